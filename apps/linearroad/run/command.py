"""`xstream linearroad run`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import gc
import json as json_module
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from linearroad.live_options import LiveFlag, LivePort, LiveRecord, Watch, live_view
from linearroad.storage import absolute, is_remote, place, typed
from xstream.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from linearroad.run.job import RunOptions, RunResult

__all__ = ["RunCommand", "run_command"]


def _speed(text: str) -> float | None:
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not speed > 0:
        raise InputError(f"--speed must be max or a positive number, not {text!r}")
    return speed


class RunCommand(typer.core.TyperCommand):
    """`--input` and `--out` are required, unless only the plan is wanted."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options."""
        for param in self.params:
            if param.name in ("input", "out"):
                param.required = "--plan" not in args
        return super().parse_args(ctx, args)


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


def _path(help: str) -> Any:
    return typer.Option(help=help, parser=typed, metavar="PATH")


_INPUT = "A flat file (also .gz, .zst, .xz), a Parquet file or a generated directory."
Input = Annotated[Path, _path(_INPUT)]
Out = Annotated[Path, _path("Output directory for the answers.")]
Tolls = Annotated[Path | None, _path("TollHistory file, flat or Parquet.")]
SegmentHistory = Annotated[Path | None, _path("SegmentHistory file, flat or Parquet.")]
HistoryFrom = Annotated[Path | None, _path("Generated directory with history.")]
Rules = Annotated[str, _option("Rule set: paper, brandeis, walmart or thesis.")]
Speed = Annotated[str, _option("max, or how many times faster than real time.")]
Minutes = Annotated[int | None, _option("Stop after this many minutes of the stream.")]
_THREADS = "Number of threads, at most one per core."
Threads = Annotated[int, _option(_THREADS, "--threads", "--workers")]
_EXPRESSWAYS = "Copy the expressways of the input until there are this many."
Expressways = Annotated[float | None, _option(_EXPRESSWAYS)]
Answers = Annotated[str, _option("write, or digest: only count and digest the answers.")]
_KEEP_STATE = "Directory in which to save the state at the end of --minutes."
KeepState = Annotated[Path | None, _path(_KEEP_STATE)]
FromState = Annotated[Path | None, _path("Directory of a saved state to continue from.")]
_STOP_WHEN_LATE = "Stop when an answer is later than its limit."
StopWhenLate = Annotated[bool, _option(_STOP_WHEN_LATE, "--stop-when-late")]
_ALLOW_EMPTY = "Accept an input without a single usable row."
AllowEmpty = Annotated[bool, _option(_ALLOW_EMPTY, "--allow-empty")]
Format = Annotated[str, _option("Format of the answers: csv or parquet.")]
Scheduler = Annotated[str, _option("Scheduler: fifo, fifo-slice, rtc or df.")]
Memory = Annotated[str, _option("Memory manager, for example refcount-lazy.")]
_ABOVE = "Rules of the thesis: toll per square of a vehicle above 150."
BaseToll = Annotated[int, _option(_ABOVE)]
_CREDIT = "Rules of the thesis: credit for leaving the expressway before an accident."
BaseCredit = Annotated[int, _option(_CREDIT)]
_FTMIN = "Rules of the thesis: balance from which tolls are halved."
FrequentTraveller = Annotated[int, _option(_FTMIN)]
_CHECKPOINT_S = "Save the state every so many seconds, in the folder checkpoints of --out."
CheckpointS = Annotated[float | None, _option(_CHECKPOINT_S, "--checkpoint-s")]
_RESUME = "Go on from the last checkpoint of a run that was interrupted or killed."
Resume = Annotated[bool, _option(_RESUME, "--resume")]
_MASTER = "Run as tasks of this Spark cluster, which need a generated directory."
Master = Annotated[str | None, _option(_MASTER)]
_GROUP = "With --master: expressways per task; default: as generated, or copies spread evenly."
Group = Annotated[int | None, _option(_GROUP)]
Plan = Annotated[bool, _option("Print the query in Graphviz format and exit.", "--plan")]
Json = Annotated[bool, _option("Print the summary as JSON.", "--json")]


def run_command(
    input: Input,
    out: Out,
    tolls: Tolls = None,
    segment_history: SegmentHistory = None,
    history: HistoryFrom = None,
    rules: Rules = "paper",
    speed: Speed = "max",
    minutes: Minutes = None,
    threads: Threads = 1,
    expressways: Expressways = None,
    answers: Answers = "write",
    keep_state: KeepState = None,
    from_state: FromState = None,
    stop_when_late: StopWhenLate = False,
    allow_empty: AllowEmpty = False,
    format: Format = "csv",
    scheduler: Scheduler = "df",
    memory: Memory = "refcount-lazy",
    basetoll: BaseToll = 2,
    basecredit: BaseCredit = 50,
    ftmin: FrequentTraveller = 500,
    checkpoint_s: CheckpointS = None,
    resume: Resume = False,
    master: Master = None,
    group: Group = None,
    plan: Plan = False,
    live: LiveFlag = False,
    live_port: LivePort = None,
    live_record: LiveRecord = None,
    watch: Watch = False,
    json: Json = False,
) -> None:
    """Run the Linear Road queries over an input. Writes answers, rejects and a summary to --out."""
    remote = any(map(is_remote, (input, out, *filter(None, (history, tolls, segment_history)))))
    clustered = (master is not None or remote) and not plan
    gc.disable()  # until the query runs: what is imported and declared stays
    from linearroad.tables.history import load_history

    with ThreadPoolExecutor(1) as reader:  # its checksums are computed while the rest is imported
        files = (None, None, None) if clustered else (history, tolls, segment_history)
        loaded = reader.submit(load_history, *files, not resume)
        from linearroad.input import length_s
        from linearroad.rules import Tariff
        from linearroad.run.job import RunOptions, run
        from linearroad.run.job import plan as query_plan
        from xstream.console.live import Live

    if plan:
        typer.echo(query_plan(rules).to_dot())
        return
    if expressways is not None and expressways == int(expressways):
        expressways = int(expressways)
    options = RunOptions(
        rules, _speed(speed), minutes, format, scheduler, memory, threads, expressways, answers,
        keep_state, from_state, stop_when_late, allow_empty, Tariff(basetoll, basecredit, ftmin),
        checkpoint_s, resume,
    )  # fmt: skip
    if clustered:
        if live_view(live, live_port, live_record, watch) is not None:
            raise InputError("--live, --live-record and --watch show a run of one process")
        from linearroad.generation.progress import show, silent
        from linearroad.run.cluster import Job, run_on_cluster

        gc.enable()
        past = [absolute(path) for path in (history, tolls, segment_history)]
        if from_state is not None:
            options = replace(options, from_state=place(from_state))
        job = Job(place(input), place(out), past[0], past[1], past[2], options)
        result = run_on_cluster(job, master, group, show if not json else silent)
        _report(result, out, options, json)
        return
    known = loaded.result()
    view = live_view(live, live_port, live_record, watch)
    with Live(options.speed is not None, length_s(input, minutes)) as progress:
        result = run(input, out, known, options, None if json or watch else progress, live=view)
    _report(result, out, options, json)


def _report(result: RunResult, out: Path, options: RunOptions, json: bool) -> None:
    """Print the summary; an interrupted run and a failed check end the command accordingly."""
    for warning in result.warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    if json:
        typer.echo(json_module.dumps(json_module.loads((out / "summary.json").read_text())))
    else:
        _print_summary(result, out, options.speed)
    if result.interrupted_by_user:
        again = "; --resume goes on from there" if options.checkpoint_s is not None else ""
        raise KeyboardInterrupt(f"{result.interruption()}, in {out}{again}")
    if result.copies_differ or (options.stop_when_late and result.first_late):
        raise typer.Exit(1)


def _print_summary(result: RunResult, out: Path, speed: float | None) -> None:
    from rich.console import Console

    from linearroad.output.tables import response_table

    title = f"Linear Road: {result.reports:,} reports in {result.wall_seconds:.1f} s"
    table = response_table(title, result.answers, result.response_s, bool(speed))
    console = Console()
    console.print(table)
    console.print(
        f"{result.reports_per_second:,.0f} reports/s, {sum(result.rejects.values()):,} rows "
        f"rejected, {result.implausible_speeds:,} implausible speeds"
    )
    if result.checkpoints is not None:
        console.print(_checkpoints_sentence(result, result.checkpoints), soft_wrap=True)
    if result.unanswerable:
        console.print(
            f"{result.unanswerable:,} travel-time requests could not be answered without a history"
        )
    if speed:
        console.print(f"furthest behind schedule: {max(result.worst_lag_s, 0):.3f} stream seconds")
        if result.longest is not None:
            console.print(result.longest, soft_wrap=True)
    if result.first_late is not None:
        console.print(f"too late: {result.first_late}", soft_wrap=True)
    if result.digests is not None and len(result.digests) > 1 and not result.interrupted:
        _print_agreement(console, result, len(result.digests))
    if result.interrupted and not result.interrupted_by_user:
        console.print(f"ended early: {result.interruption()}", soft_wrap=True)
    kept = "digests of the answers" if result.digests is not None else "answers"
    console.print(f"{kept} in {out}", soft_wrap=True)


def _print_agreement(console: Console, result: RunResult, expressways: int) -> None:
    """Print whether the answers of copies match those of their originals."""
    if not result.copies_differ:
        console.print(f"digests of {expressways:,} expressways: copies equal originals")
        return
    console.print(f"COPIES DIFFER from their originals in {result.copies_differ:,} digests:")
    for sentence in result.first_differences:
        console.print(f"  {sentence}", soft_wrap=True)


def _checkpoints_sentence(result: RunResult, taken: dict[str, Any]) -> str:
    went_on = ""
    if taken["resumed_from"] is not None:
        first = f", first answers after {result.recovery_s:.1f} s" if result.recovery_s else ""
        went_on = f"went on from checkpoint {taken['resumed_from']}{first}; "
    return (
        f"{went_on}{taken['count']:,} checkpoints of {taken['bytes'] / 2**20:,.1f} MiB in all; the "
        f"query stood still for {taken['pause_s']:.2f} s, at most {taken['longest_pause_s']:.3f} s"
    )
