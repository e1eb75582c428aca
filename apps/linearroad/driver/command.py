"""`xstream linearroad drive`: the command line. The job is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from linearroad.driver.results import DriveResult

__all__ = ["drive_command"]


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


_INPUT = "A flat file (also .gz, .zst, .xz), a Parquet file or a generated directory."
Input = Annotated[Path, _option(_INPUT)]
To = Annotated[str, _option("HOST:PORT of the system.")]
Out = Annotated[Path, _option("Output directory for the answers.")]
WireName = Annotated[str, _option("Format of rows and answers: flat, thesis or arrow.")]
Speed = Annotated[float, _option("How many times faster than real time.")]
Minutes = Annotated[int | None, _option("Stop after this many minutes of the stream.")]
_EXPRESSWAYS = "Copy the expressways of the input until there are this many."
Expressways = Annotated[float | None, _option(_EXPRESSWAYS)]
Answers = Annotated[str, _option("write, or digest: only count and digest the answers.")]
_MARKS = "Whether a row of type 1 marks the end of each second; default: only with --wire arrow."
Marks = Annotated[bool | None, _option(_MARKS, "--marks/--no-marks")]
WaitS = Annotated[float, _option("Seconds to wait until the system listens.")]
StallS = Annotated[float, _option("Give up when the system reads nothing for so many seconds.")]
_RECONNECT_S = "After a cut, try to go on for so many seconds; the system must support that."
ReconnectS = Annotated[float, _option(_RECONNECT_S)]
_STOP_WHEN_LATE = "End at the first answer that comes after its limit."
StopWhenLate = Annotated[bool, _option(_STOP_WHEN_LATE, "--stop-when-late")]
Json = Annotated[bool, _option("Print the summary as JSON.", "--json")]


def drive_command(
    input: Input,
    to: To,
    out: Out,
    wire: WireName = "flat",
    speed: Speed = 1.0,
    minutes: Minutes = None,
    expressways: Expressways = None,
    answers: Answers = "write",
    marks: Marks = None,
    wait_s: WaitS = 0.0,
    stall_s: StallS = 60.0,
    reconnect_s: ReconnectS = 0.0,
    stop_when_late: StopWhenLate = False,
    json: Json = False,
) -> None:
    """Send traffic to a system over the network at its times, and time the system's answers."""
    from linearroad.driver.job import drive
    from linearroad.driver.results import DriveOptions
    from linearroad.input import length_s
    from xstream.console import Progress
    from xstream.console.live import Live

    if expressways is not None and expressways == int(expressways):
        expressways = int(expressways)
    options = DriveOptions(
        wire, speed, minutes, expressways, answers, marks, wait_s, stall_s, reconnect_s=reconnect_s,
        stop_when_late=stop_when_late,
    )  # fmt: skip
    length = length_s(input, minutes)
    with Live(True, length, Progress("drive", length, "second")) as live:
        result = drive(input, to, out, options, None if json else live)
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
