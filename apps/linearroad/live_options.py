"""The options of `run` and `serve` that show a run while it is under way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.errors import InputError

if TYPE_CHECKING:
    import xstream as xs

__all__ = ["LiveFlag", "LivePort", "LiveRecord", "Watch", "live_view"]


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


_LIVE = "Show the run on a page on 127.0.0.1; its address is printed."
LiveFlag = Annotated[bool, _option(_LIVE, "--live")]
_PORT = "Port of that page, instead of a free one."
LivePort = Annotated[int | None, _option(_PORT, "--live-port")]
_RECORD = "File in which the live view is recorded, for xstream live."
LiveRecord = Annotated[Path | None, _option(_RECORD, "--live-record")]
Watch = Annotated[bool, _option("Show the run in the terminal.", "--watch")]


def live_view(live: bool, port: int | None, record: Path | None, watch: bool) -> xs.Live | None:
    """The live view that the options ask for; None if they do not."""
    if port is not None and not 0 <= port <= 65535:
        raise InputError(f"--live-port must be from 0 to 65,535, not {port}")
    if not (live or port is not None or record is not None or watch):
        return None
    from xstream import Live

    return Live(port or 0, page=live or port is not None, record=record, watch=watch)
