"""`xstream linearroad run`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import gc
import json as json_module
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from linearroad.options import (
    Answers,
    Expressways,
    HistoryFiles,
    Input,
    Json,
    LiveOptions,
    Memory,
    Minutes,
    Rules,
    ThesisTariff,
    option,
    path_option,
)
from linearroad.storage import absolute, is_remote, place
from xstream.console.groups import grouped
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


@dataclass(frozen=True)
class Files:
    """What is read and written."""

    input: Input
    out: Annotated[Path, path_option("Output directory for the answers.")]


@dataclass(frozen=True)
class Task:
    """What is computed, of which rows, and how fast."""

    rules: Rules = "paper"
    speed: Annotated[str, option("max, or how many times faster than real time.")] = "max"
    minutes: Minutes = None
    expressways: Expressways = None
    answers: Answers = "write"
    format: Annotated[str, option("Format of the answers: csv or parquet.")] = "csv"
    stop_when_late: Annotated[
        bool, option("Stop when an answer is later than its limit.", "--stop-when-late")
    ] = False
    allow_empty: Annotated[
        bool, option("Accept an input without a single usable row.", "--allow-empty")
    ] = False


@dataclass(frozen=True)
class Engine:
    """How the engine runs it."""

    threads: Annotated[
        int, option("Number of threads, at most one per core.", "--threads", "--workers")
    ] = 1
    scheduler: Annotated[str, option("Scheduler: fifo, fifo-slice, rtc or df.")] = "df"
    memory: Memory = "refcount-lazy"


@dataclass(frozen=True)
class Saved:
    """State that is kept, and what a run goes on from."""

    keep_state: Annotated[
        Path | None, path_option("Directory in which to save the state at the end of --minutes.")
    ] = None
    from_state: Annotated[
        Path | None, path_option("Directory of a saved state to continue from.")
    ] = None
    checkpoint_s: Annotated[
        float | None,
        option("Seconds between checkpoints, which are saved in the folder checkpoints of --out."),
    ] = None
    resume: Annotated[
        bool,
        option("Continue from the last checkpoint of a run that was interrupted or killed.",
               "--resume"),
    ] = False  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """The machines that share a run."""

    master: Annotated[
        str | None, option("Run as tasks of this Spark cluster, which need a generated directory.")
    ] = None
    group: Annotated[
        int | None,
        option("With --master: expressways per task; default: as generated, or copies spread "
               "evenly."),
    ] = None  # fmt: skip


Plan = Annotated[bool, option("Print the query in Graphviz format and exit.", "--plan")]


@grouped
def run_command(
    files: Files,
    past: HistoryFiles,
    task: Task,
    engine: Engine,
    saved: Saved,
    thesis: ThesisTariff,
    cluster: Cluster,
    live: LiveOptions,
    plan: Plan = False,
    json: Json = False,
) -> None:
    """Run the Linear Road queries over an input. Writes answers, rejects and a summary to --out."""
    remote = any(map(is_remote, filter(None, (files.input, files.out, *past.paths()))))
    clustered = (cluster.master is not None or remote) and not plan
    gc.disable()  # until the query runs: what is imported and declared stays
    from linearroad.tables.history import load_history

    with ThreadPoolExecutor(1) as reader:  # its checksums are computed while the rest is imported
        loaded = reader.submit(
            load_history, *((None,) * 3 if clustered else past.paths()), not saved.resume
        )
        from linearroad.input import length_s
        from linearroad.run.job import plan as query_plan
        from linearroad.run.job import run
        from xstream.console.live import Live

    if plan:
        typer.echo(query_plan(task.rules).to_dot())
        return
    options = _options(task, engine, saved, thesis)
    if clustered:
        result = _run_on_cluster(files, past, options, cluster, live, json)
    else:
        known, view = loaded.result(), live.view()
        shown = json or live.watch
        with Live(options.speed is not None, length_s(files.input, task.minutes)) as progress:
            result = run(
                files.input, files.out, known, options, None if shown else progress, live=view
            )
    _report(result, files.out, options, json)


def _options(task: Task, engine: Engine, saved: Saved, thesis: ThesisTariff) -> RunOptions:
    from linearroad.run.job import RunOptions

    expressways = task.expressways
    if expressways is not None and expressways == int(expressways):
        expressways = int(expressways)
    return RunOptions(
        rules=task.rules, speed=_speed(task.speed), minutes=task.minutes, form=task.format,
        scheduler=engine.scheduler, memory=engine.memory, threads=engine.threads,
        expressways=expressways, answers=task.answers, keep_state=saved.keep_state,
        from_state=saved.from_state, stop_when_late=task.stop_when_late,
        allow_empty=task.allow_empty, tariff=thesis.tariff(), checkpoint_s=saved.checkpoint_s,
        resume=saved.resume,
    )  # fmt: skip


def _run_on_cluster(
    files: Files, past: HistoryFiles, options: RunOptions, cluster: Cluster, live: LiveOptions,
    json: bool,
) -> RunResult:  # fmt: skip
    if live.view() is not None:
        raise InputError("--live, --live-record and --watch show a run of one process")
    from linearroad.generation.progress import show, silent
    from linearroad.run.cluster import Job, run_on_cluster

    gc.enable()
    if options.from_state is not None:
        options = replace(options, from_state=place(options.from_state))
    history, tolls, segment_history = map(absolute, past.paths())
    job = Job(place(files.input), place(files.out), history, tolls, segment_history, options)
    return run_on_cluster(job, cluster.master, cluster.group, silent if json else show)


def _report(result: RunResult, out: Path, options: RunOptions, json: bool) -> None:
    """Print the summary; an interrupted run and a failed check end the command accordingly."""
    for warning in result.warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    if json:
        typer.echo(json_module.dumps(json_module.loads((out / "summary.json").read_text())))
    else:
        _print_summary(result, out, options.speed)
    if result.interrupted_by_user:
        again = "; --resume continues from there" if options.checkpoint_s is not None else ""
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
