"""`xstream linearroad run`: the command; what it runs is imported when it runs."""

from __future__ import annotations

import json as json_module
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xstream.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

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
    expressways: Annotated[
        int | None,
        typer.Option(help="Copy the directory's expressways until there are so many."),
    ] = None,
    answers: Annotated[
        str, typer.Option(help="write, or digest: count and digest them only.")
    ] = "write",
    keep_state: Annotated[
        Path | None, typer.Option(help="Keep the state at the end of --minutes in a directory.")
    ] = None,
    from_state: Annotated[
        Path | None, typer.Option(help="Go on from a state that was kept.")
    ] = None,
    stop_when_late: Annotated[
        bool, typer.Option("--stop-when-late", help="End when an answer comes after its limit.")
    ] = False,
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
    options = RunOptions(
        rules, _speed(speed), minutes, format, scheduler, memory, workers, expressways, answers,
        keep_state, from_state, stop_when_late,
    )  # fmt: skip
    known = load_history(history, tolls, segment_history)
    live = _Live(options.speed is not None) if not json else None
    result = run(input, out, known, options, live)
    if live is not None:
        live.end()
    if json:
        typer.echo(json_module.dumps(json_module.loads((out / "summary.json").read_text())))
    else:
        _print_summary(result, out, options.speed)
    if result.copies_differ or (stop_when_late and result.first_late):
        raise typer.Exit(1)
    if result.interrupted:
        raise typer.Exit(128 + signal.SIGINT)


class _Live:
    """Stream time, lag, reports a second and memory, while it runs: one line on a terminal.

    When a paced run falls behind, or its first answers are late, it says so at once.
    """

    PLAIN_EVERY_S = 10.0
    BEHIND_S = 1.0  # stream seconds

    def __init__(self, paced: bool) -> None:
        import psutil

        self._terminal = sys.stderr.isatty()
        self._process = psutil.Process()
        self._shown = self._warned = time.perf_counter()
        self._rows = 0
        self._paced, self._behind, self._late = paced, False, False

    def __call__(self, result: RunResult) -> None:
        """Show where the run is."""
        now = time.perf_counter()
        if self._paced:
            self._warn(result, now)
        if now - self._shown < (0.2 if self._terminal else self.PLAIN_EVERY_S):
            return
        rate = (result.rows - self._rows) / (now - self._shown)
        self._shown, self._rows = now, result.rows
        memory = self._process.memory_info().rss / 2**20
        line = (
            f"second {result.stream_seconds:,}, lag {result.lag_s:.1f} s, {rate:,.0f} rows/s, "
            f"{sum(result.answers.values()):,} answers, {memory:,.0f} MiB"
        )
        if self._terminal:
            typer.echo(f"\r{line}\033[K", nl=False, err=True)
        else:
            typer.echo(line, err=True)

    def _warn(self, result: RunResult, now: float) -> None:
        if result.first_late is not None and not self._late:
            self._late = True
            self._say(f"too late: {result.first_late}")
        behind = result.lag_s > self.BEHIND_S
        if behind and (not self._behind or now - self._warned > self.PLAIN_EVERY_S):
            self._warned = now
            self._say(
                f"falling behind: second {result.stream_seconds:,} is {result.lag_s:.1f} stream "
                "seconds late"
            )
        elif self._behind and not behind:
            self._say(f"caught up at second {result.stream_seconds:,}")
        self._behind = behind

    def _say(self, sentence: str) -> None:
        typer.echo(f"\r{sentence}\033[K" if self._terminal else sentence, err=True)

    def end(self) -> None:
        """The line has been left."""
        if self._terminal:
            typer.echo("\r\033[K", nl=False, err=True)


def _print_summary(result: RunResult, out: Path, speed: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"Linear Road: {result.reports:,} reports in {result.wall_seconds:.1f} s"
    table = Table(title=title, min_width=len(title))
    timed = ("p50 s", "p99 s", "p99.99 s", "worst s", "late") if speed else ()
    for heading in ("answer", "count", *timed):
        table.add_column(heading, justify="left" if heading == "answer" else "right")
    for name, count in result.answers.items():
        delays = result.response_s.get(name)
        figures = (
            [*(f"{delays[name]:.3f}" for name in ("p50", "p99", "p9999", "worst")),
             f"{delays['late']:,.0f}"]
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
        if result.longest is not None:
            console.print(result.longest, soft_wrap=True)
    if result.first_late is not None:
        console.print(f"too late: {result.first_late}", soft_wrap=True)
    if result.digests is not None and len(result.digests) > 1 and not result.interrupted:
        _print_agreement(console, result, len(result.digests))
    if result.interrupted and result.digests is not None:
        console.print(f"interrupted at about stream second {result.stream_seconds:,}")
    elif result.interrupted:
        console.print(
            f"interrupted: answers are complete up to stream second {result.stream_seconds:,}"
        )
    kept = "digests of the answers" if result.digests is not None else "answers"
    console.print(f"{kept} in {out}", soft_wrap=True)


def _print_agreement(console: Console, result: RunResult, expressways: int) -> None:
    """Whether copies were answered as their originals were."""
    if not result.copies_differ:
        console.print(f"digests of {expressways:,} expressways: copies equal originals")
        return
    console.print(f"COPIES DIFFER from their originals in {result.copies_differ:,} digests:")
    for sentence in result.first_differences:
        console.print(f"  {sentence}", soft_wrap=True)
