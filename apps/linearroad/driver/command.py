"""`xstream linearroad drive`: the command line. The job is imported when the command runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linearroad.options import Answers, Expressways, Json, Minutes, WireName, option
from xstream.console.groups import grouped

if TYPE_CHECKING:
    from linearroad.driver.results import DriveResult

__all__ = ["drive_command"]

_INPUT = "A flat file (also .gz, .zst, .xz), a Parquet file or a generated directory."
_MARKS = "Whether a row of type 1 marks the end of each second; default: only with --wire arrow."


@dataclass(frozen=True)
class Traffic:
    """What is sent, how fast, and what becomes of the answers."""

    input: Annotated[Path, option(_INPUT)]
    out: Annotated[Path, option("Output directory for the answers.")]
    speed: Annotated[float, option("How many times faster than real time.")] = 1.0
    minutes: Minutes = None
    expressways: Expressways = None
    answers: Answers = "write"
    stop_when_late: Annotated[
        bool, option("End at the first answer that comes after its limit.", "--stop-when-late")
    ] = False


@dataclass(frozen=True)
class System:
    """The system, and how long it is waited for."""

    to: Annotated[str, option("HOST:PORT of the system.")]
    wire: WireName = "flat"
    marks: Annotated[bool | None, option(_MARKS, "--marks/--no-marks")] = None
    wait_s: Annotated[float, option("Seconds to wait until the system listens.")] = 0.0
    stall_s: Annotated[
        float, option("Give up when the system reads nothing for this many seconds.")
    ] = 60.0
    reconnect_s: Annotated[
        float,
        option("After a lost connection, retry for this many seconds; the system must support it."),
    ] = 0.0


@grouped
def drive_command(traffic: Traffic, system: System, json: Json = False) -> None:
    """Send traffic to a system over the network at its times, and time the system's answers."""
    from linearroad.driver.job import drive
    from linearroad.driver.results import DriveOptions
    from linearroad.input import length_s
    from xstream.console import Progress
    from xstream.console.live import Live

    expressways, out = traffic.expressways, traffic.out
    if expressways is not None and expressways == int(expressways):
        expressways = int(expressways)
    options = DriveOptions(
        system.wire, traffic.speed, traffic.minutes, expressways, traffic.answers, system.marks,
        system.wait_s, system.stall_s, reconnect_s=system.reconnect_s,
        stop_when_late=traffic.stop_when_late,
    )  # fmt: skip
    length = length_s(traffic.input, traffic.minutes)
    with Live(True, length, Progress("drive", length, "second")) as live:
        result = drive(traffic.input, system.to, out, options, None if json else live)
    for warning in result.warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    if json:
        typer.echo((out / "summary.json").read_text().strip())
    else:
        _print_summary(result, out)
    if result.interrupted_by_user:
        raise KeyboardInterrupt(f"{result.interruption()}, answers in {out}")
    if not result.passed:
        raise typer.Exit(1)


def _print_summary(result: DriveResult, out: Path) -> None:
    from rich.console import Console

    from linearroad.output.tables import response_table

    console = Console()
    title = f"Linear Road: {result.rows:,} rows in {result.wall_seconds:.1f} s"
    console.print(response_table(title, result.answers, result.response_s))
    figures = (
        f"{result.bytes_sent / 2**20:,.0f} MiB sent, {result.bytes_received / 2**20:,.0f} MiB "
        f"received, rows sent at most {result.worst_lag_s:.3f} stream seconds late"
    )
    console.print(figures, soft_wrap=True)
    if result.reconnections:
        console.print(
            f"went on after {result.reconnections:,} cut connections and {result.away_s:.1f} s "
            f"without the system; {result.repeated_answers:,} answers that came again were dropped",
            soft_wrap=True,
        )
    for label, sentence in (
        ("", result.longest),
        ("", result.fell_behind),
        ("too late: ", result.first_late),
        ("ended early: ", result.ended),
    ):
        if sentence is not None:
            console.print(f"{label}{sentence}", soft_wrap=True, markup=False)
    if result.malformed_answers:
        console.print(f"{result.malformed_answers:,} answers could not be read: see rejects.csv")
    for sentence in result.first_differences:
        console.print(f"COPIES DIFFER: {sentence}", soft_wrap=True, markup=False)
    console.print(f"results in {out}", soft_wrap=True)
