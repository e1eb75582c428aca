"""`xstream live`: shows a recording of a live view again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xstream.console import within

if TYPE_CHECKING:
    from xstream.live.recording import Recording

__all__ = ["live"]


def live(
    file: Annotated[
        Path, typer.Argument(help="Recording of a run: what --live-record has written.")
    ],
    port: Annotated[
        int,
        typer.Option(help="Port on 127.0.0.1; 0 chooses a free one.", callback=within(0, 65535)),
    ] = 0,
    run: Annotated[
        int | None, typer.Option(help="Number of the run, if the file has several; the last one.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it in the terminal instead of on a page.")
    ] = False,
    speed: Annotated[
        float,
        typer.Option(help="How many times as fast, with --watch.", callback=within(0.01, 1e4)),
    ] = 1.0,
) -> None:  # fmt: skip
    """Show the recording of a run, on a page with a time slider or in the terminal.

    Ctrl-C ends the command, and closes the port.
    """
    from xstream.live.recording import Recording

    recording = Recording(file, run)
    begin_s, end_s = recording.seconds
    which = "" if recording.runs == 1 else f", run {run or recording.runs} of {recording.runs}"
    typer.echo(
        f"{file}: {recording.header['query']}{which}, {recording.frames:,} frames, "
        f"{begin_s:.1f} to {end_s:.1f} s",
        err=True,
    )
    if watch:
        _watch(recording, speed)
        return
    from xstream.live.server import PageServer

    server = PageServer(port=port)
    server.feed = recording
    typer.echo(f"live view: {server.address} (Ctrl-C ends it)", err=True)
    try:
        while True:
            time.sleep(3600)
    finally:
        server.close()


def _watch(recording: Recording, speed: float) -> None:
    import json

    from xstream.live.terminal import TerminalView

    view = TerminalView()
    try:
        panels: dict[str, dict[str, object]] = {}
        for event in recording.events(recording.seconds[0], speed, patience_s=1.0):
            if event is not None and event.kind == "panels":
                panels = json.loads(event.data)
            elif event is not None:
                view.show(recording.header, json.loads(event.data), panels)
    finally:
        view.close()
