"""`xstream linearroad run`: the command; what it runs is imported when it runs."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xstream.errors import InputError

if TYPE_CHECKING:
    from linearroad.queries.run import RunResult

__all__ = ["run_command"]


def _speed(text: str) -> float | None:
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise InputError(f"--speed is max or a positive number, not {text!r}")
    return speed


def run_command(
    input: Annotated[
        Path | None, typer.Option(help="Flat file (.gz, .zst, .xz), Parquet, or a directory.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the answers.")] = None,
    tolls: Annotated[Path | None, typer.Option(help="TollHistory, flat or Parquet.")] = None,
    segment_history: Annotated[
        Path | None, typer.Option(help="SegmentHistory, flat or Parquet.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option(help="A directory that `generate --history` wrote.")
    ] = None,
    rules: Annotated[str, typer.Option(help="paper, brandeis or walmart.")] = "paper",
    speed: Annotated[
        str, typer.Option(help="max, or how many times faster than the clock.")
    ] = "max",
    minutes: Annotated[int | None, typer.Option(help="Stop after so many minutes.")] = None,
    workers: Annotated[int, typer.Option(help="Engines; expressways are divided.")] = 1,
    format: Annotated[str, typer.Option(help="csv or parquet.")] = "csv",
    scheduler: Annotated[str, typer.Option(help="fifo, fifo-slice, rtc or df.")] = "df",
    memory: Annotated[str, typer.Option(help="The memory manager.")] = "refcount-lazy",
    plan: Annotated[bool, typer.Option("--plan", help="Print the query as a graph.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run the Linear Road queries over an input; answers, rejects and a summary go to --out."""
    from linearroad.queries.loading import load_history
    from linearroad.queries.run import RunOptions, run
    from linearroad.queries.run import plan as query_plan

    if plan:
        typer.echo(query_plan(rules).to_dot())
        return
    if input is None or out is None:
        raise InputError("--input and --out are needed")
    options = RunOptions(rules, _speed(speed), minutes, format, scheduler, memory, workers)
    known = load_history(history, tolls, segment_history)
    show = _live if not json else None
    result = run(input, out, known, options, show)
    if show is not None and sys.stderr.isatty():
        typer.echo("", err=True)
    if json:
        typer.echo(json_module.dumps(json_module.loads((out / "summary.json").read_text())))
    else:
        _print_summary(result, out, options.speed)


def _live(result: RunResult) -> None:
    """Stream time, lag, reports a second and memory, while it runs."""
    if not sys.stderr.isatty():
        return
    import resource

    answered = sum(result.answers.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    typer.echo(
        f"\r{result.stream_seconds:,} s of stream, {result.rows:,} rows, {answered:,} answers, "
        f"lag {result.worst_lag_s:.1f} s, {memory:,.0f} MiB\033[K",
        nl=False,
        err=True,
    )


def _print_summary(result: RunResult, out: Path, speed: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Linear Road: {result.reports:,} reports in {result.wall_seconds:.1f} s")
    for heading in ("answer", "count", *(("p50 s", "p99 s", "worst s", "late") if speed else ())):
        table.add_column(heading, justify="left" if heading == "answer" else "right")
    for name, count in result.answers.items():
        delays = result.response_s.get(name)
        figures = (
            [f"{delays['p50']:.3f}", f"{delays['p99']:.3f}", f"{delays['worst']:.3f}",
             f"{delays['late']:.0f}"]
            if delays else []
        )  # fmt: skip
        table.add_row(name, f"{count:,}", *figures)
    console = Console()
    console.print(table)
    console.print(
        f"{result.reports_per_second:,.0f} reports/s, {sum(result.rejects.values()):,} rows "
        f"rejected, {result.implausible_speeds:,} implausible speeds"
    )
    if result.unanswerable:
        console.print(f"{result.unanswerable:,} travel times without a history to answer from")
    if speed:
        console.print(f"furthest behind schedule: {max(result.worst_lag_s, 0):.3f} stream seconds")
    if result.interrupted:
        console.print(f"interrupted after second {result.stream_seconds:,} of the stream")
    console.print(f"answers in {out}")
