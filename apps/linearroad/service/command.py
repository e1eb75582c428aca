"""`xstream linearroad serve`: the command line. The job is imported when the command runs."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from linearroad.options import (
    HistoryFiles,
    LiveOptions,
    Memory,
    Rules,
    ThesisTariff,
    WireName,
    option,
)
from xstream.console.groups import grouped
from xstream.errors import InputError

__all__ = ["serve_command"]


#: An expressway takes about 4 MiB from the start.
MOST_EXPRESSWAYS = 100_000


@dataclass(frozen=True)
class Service:
    """Where drivers connect, and how long the service waits for them."""

    listen: Annotated[
        str, option("HOST:PORT to listen on; with port 0 a free one is chosen and printed.")
    ] = "127.0.0.1:9000"
    wire: WireName = "flat"
    once: Annotated[bool, option("End after one driver.", "--once")] = False
    stall_s: Annotated[float, option("Drop a driver that reads nothing for this many seconds.")] = (
        60.0
    )


@dataclass(frozen=True)
class Engine:
    """What is computed, and how."""

    rules: Rules = "paper"
    expressways: Annotated[
        float | None,
        option("Reserve tables for this many expressways, and use the history for copies as well."),
    ] = None
    threads: Annotated[int, option("Number of threads, at most one per core.")] = 1
    memory: Memory = "refcount-lazy"


@dataclass(frozen=True)
class Saved:
    """Checkpoints."""

    checkpoint_s: Annotated[
        float | None,
        option("Seconds between checkpoints, from which a drive can continue after a crash."),
    ] = None
    checkpoints: Annotated[Path, option("Folder for the checkpoints.")] = Path("checkpoints")
    resume: Annotated[
        bool,
        option("Continue from the last checkpoint of a service that was stopped or killed.",
               "--resume"),
    ] = False  # fmt: skip


@grouped
def serve_command(
    service: Service,
    engine: Engine,
    past: HistoryFiles,
    thesis: ThesisTariff,
    saved: Saved,
    live: LiveOptions,
) -> None:
    """Answer drivers over the network, one at a time, with the queries of `run`."""
    from linearroad.service.job import ServeOptions, history_of_copies, serve
    from linearroad.tables.history import load_history
    from xstream.console.stop import Stop

    if saved.resume and saved.checkpoint_s is None:
        raise InputError("--resume requires --checkpoint-s")
    expressways, every_s = engine.expressways, saved.checkpoint_s
    options = ServeOptions(
        service.listen, service.wire, engine.rules, engine.threads, engine.memory, service.once,
        expressways, thesis.tariff(), service.stall_s,
        None if every_s is None else saved.checkpoints, 10.0 if every_s is None else every_s,
        saved.resume,
    )  # fmt: skip
    known = load_history(*past.paths())
    if expressways is not None and not 0.5 <= expressways <= MOST_EXPRESSWAYS:
        raise InputError(
            f"--expressways must be from 0.5 to {MOST_EXPRESSWAYS:,}, not {expressways:g}"
        )
    if expressways is not None and past.history is not None:
        known = history_of_copies(known, past.history, expressways)
    stop, view = Stop(), live.view()
    with view or nullcontext():
        served = serve(options, known, lambda line: typer.echo(line, err=True), stop, live=view)
    if stop.by_user:
        raise KeyboardInterrupt(f"{len(served):,} drivers were served")
    if service.once and served and served[0].error is not None:
        raise typer.Exit(1)
