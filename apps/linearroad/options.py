"""Options that several commands share, and groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearroad.storage import typed
from xstream.errors import InputError

if TYPE_CHECKING:
    import xstream as xs
    from linearroad.rules import Tariff

__all__ = [
    "Answers",
    "Expressways",
    "HistoryFiles",
    "Input",
    "Json",
    "LiveOptions",
    "Memory",
    "Minutes",
    "Rules",
    "ThesisTariff",
    "WireName",
    "option",
    "path_option",
]


def option(help: str, *names: str) -> Any:
    """An option of a command."""
    return typer.Option(*names, help=help)


def path_option(help: str) -> Any:
    """An option that is a path or a URI."""
    return typer.Option(help=help, parser=typed, metavar="PATH")


_INPUT = "A flat file (also .gz, .zst, .xz), a Parquet file or a generated directory."
Input = Annotated[Path, path_option(_INPUT)]
Rules = Annotated[str, option("Rule set: paper, brandeis, walmart or thesis.")]
Minutes = Annotated[int | None, option("Stop after this many minutes of the stream.")]
_EXPRESSWAYS = "Copy the expressways of the input until there are this many."
Expressways = Annotated[float | None, option(_EXPRESSWAYS)]
Answers = Annotated[str, option("write, or digest: only count and digest the answers.")]
Memory = Annotated[str, option("Memory manager, for example refcount-lazy.")]
WireName = Annotated[str, option("Format of rows and answers: flat, thesis or arrow.")]
Json = Annotated[bool, option("Print the summary as JSON.", "--json")]


@dataclass(frozen=True)
class HistoryFiles:
    """Where ten weeks of tolls and segment statistics are read from."""

    history: Annotated[Path | None, path_option("Generated directory with history.")] = None
    tolls: Annotated[Path | None, path_option("TollHistory file, flat or Parquet.")] = None
    segment_history: Annotated[
        Path | None, path_option("SegmentHistory file, flat or Parquet.")
    ] = None

    def paths(self) -> tuple[Path | None, Path | None, Path | None]:
        """As `load_history` takes them."""
        return self.history, self.tolls, self.segment_history


@dataclass(frozen=True)
class ThesisTariff:
    """What the rules of the thesis charge and credit."""

    basetoll: Annotated[
        int, option("Rules of the thesis: toll per square of a vehicle above 150.")
    ] = 2
    basecredit: Annotated[
        int, option("Rules of the thesis: credit for leaving the expressway before an accident.")
    ] = 50
    ftmin: Annotated[int, option("Rules of the thesis: balance from which tolls are halved.")] = 500

    def tariff(self) -> Tariff:
        """As the rules take them."""
        from linearroad.rules import Tariff

        return Tariff(self.basetoll, self.basecredit, self.ftmin)


@dataclass(frozen=True)
class LiveOptions:
    """Whether, and where, a run is shown while it is under way."""

    live: Annotated[
        bool, option("Show the run on a page on 127.0.0.1; its address is printed.", "--live")
    ] = False
    live_port: Annotated[int | None, option("Port of that page, instead of a free one.")] = None
    live_record: Annotated[
        Path | None, option("File in which the live view is recorded, for xstream live.")
    ] = None
    watch: Annotated[bool, option("Show the run in the terminal.", "--watch")] = False

    def view(self) -> xs.Live | None:
        """The live view that the options ask for; None if they do not."""
        port, record = self.live_port, self.live_record
        if port is not None and not 0 <= port <= 65535:
            raise InputError(f"--live-port must be from 0 to 65,535, not {port}")
        page = self.live or port is not None
        if not (page or record is not None or self.watch):
            return None
        from xstream import Live

        return Live(port or 0, page=page, record=record, watch=self.watch)
