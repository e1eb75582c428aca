"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import xstream as xs
from linearroad.generation.manifest import read_manifest
from linearroad.input import open_input, unverified
from linearroad.network import Network
from linearroad.operators.answers import TABLE, batch
from linearroad.operators.digests import DIGEST_WIDTH
from linearroad.output.digests import differences, write_digests
from linearroad.output.sink import AnswerSink, RunResult
from linearroad.output.summary import RunOptions, write_summary
from linearroad.output.writers import FORMATS, RESULTS, RejectWriter, answer_writer
from linearroad.rules import rules_named
from linearroad.run.copies import ORIGINAL, Copy, copies_of
from linearroad.run.feed import RAW, Feed
from linearroad.run.memory import check_memory
from linearroad.run.stages import stage_nanoseconds
from linearroad.run.state import KeptState, keep_state, read_state
from linearroad.run.workers import HUB_BURST, DigestOutput, Worker, connect_writer
from linearroad.schema import KINDS
from linearroad.tables.history import History
from xstream.console.folder import result_folder
from xstream.console.stop import interruptible
from xstream.console.timeline import Timeline, attributed, read_timeline
from xstream.io.page_checksums import unverified_sentence
from xstream.io.schedule import NO_LIMIT, Schedule

__all__ = ["RunOptions", "RunResult", "plan", "run"]

#: Slower, and a stream takes years; faster, and the time at which answers leave means nothing.
SLOWEST, FASTEST = 0.001, 1e6
MOST_MINUTES = 2**31 // 60


def plan(rules: str = "paper") -> xs.Query:
    """The query network, for `to_dot`."""
    query = xs.Query("linear road")
    network = Network(query, rules_named(rules))
    seconds = network.seconds(query.source(xs.io.iterable([], out=RAW), name="rows"))
    part = network.part(seconds, History(), 0)
    answers = [
        table.select(*TABLE) for table in (*part.tables, network.balances([part.money]))
    ]  # fmt: skip
    merged = answers[0].merge(*answers[1:], by="time", name="answers by time")
    merged.iterate(batch, len(answers), 1, name="answers").count(name="sink")
    for stream in (seconds, part.reports):
        stream.select("reject").count()
    return query


def run(
    source: Path,
    out: Path,
    history: History,
    options: RunOptions,
    progress: Callable[[RunResult], None] | None = None,
) -> RunResult:
    """Run the query over an input and leave answers, rejects and a summary in `out`."""
    _check(options)
    copies = copies_of(source, options.expressways)
    readers = open_input(source)
    files, unchecked = len(readers), [*unverified(readers), *history.unverified]
    if len(copies) > 1:
        check_memory(source, len(copies) * files, history.nbytes)
    kept = None if options.from_state is None else read_state(options.from_state, source)
    if kept is not None and options.minutes is not None and options.minutes <= kept.minute:
        raise xs.InputError(
            f"--minutes must be greater than {kept.minute}, the minute of the saved state, "
            f"not {options.minutes}"
        )
    if options.keep_state is not None:
        read_manifest(source)  # only generated traffic can be gone on with
    workers = _workers(options, len(copies), files)
    begin_s = 60 * kept.minute if kept is not None else 0
    limit_s = NO_LIMIT if options.minutes is None else 60 * options.minutes
    schedule = Schedule(xs.io.StreamTime(options.speed, begin_s), workers, limit_s)
    try:
        with result_folder(out, source, RESULTS):
            rejects = RejectWriter(out / "rejects.csv", files > 1)
            timeline = Timeline(out / "timeline.csv", schedule.time.wall_s)
            with closing(rejects), closing(timeline):
                writer = answer_writer(out, options.form, options.answers)
                taker = AnswerSink(writer, schedule)
                if unchecked:
                    taker.result.warnings.append(unverified_sentence(unchecked))
                look = _Look(taker, timeline, progress, options.stop_when_late)
                engines = _divide(source, copies, workers, rejects, schedule, history, options)
                if options.answers == "digest":
                    _digest(engines, taker, look, kept)
                    if look.outputs:
                        _keep(source, out, look.outputs, taker.result, options)
                else:
                    _write(engines, taker, look)
            result = taker.result
            _conclude(result, source, out, rejects, options)
            if options.speed is not None:
                rows = read_timeline(out / "timeline.csv")
                second, delay_s = taker.delays.worst
                result.longest = attributed(rows, second, delay_s) if second >= 0 else None
            write_summary(out / "summary.json", result, options, workers, files, begin_s)
            return result
    except OSError as error:  # reading has its own sentences
        raise xs.InputError(f"{out} cannot be written: {error.strerror}") from error


def _conclude(
    result: RunResult, source: Path, out: Path, rejects: RejectWriter, options: RunOptions
) -> None:
    """What has become of the rows; an InputError if not one of them could be used."""
    result.rejects = dict(sorted(rejects.by_reason.items()))
    if (disorder := rejects.disorder_sentence()) is not None:
        result.warnings.append(disorder)
    if result.reports or result.requests or result.interrupted or options.allow_empty:
        return
    for name in ("output.csv", "output.parquet", "digests.parquet"):
        (out / name).unlink(missing_ok=True)
    if result.rejects:
        count, first = sum(result.rejects.values()), rejects.first
        raise xs.InputError(
            f"none of the {count:,} rows of {source} could be used, so there are no answers: "
            f"{first}; all of them are in {out / 'rejects.csv'} (--allow-empty accepts this)"
        )
    within = "" if options.minutes is None else f" in its first {options.minutes:,} minutes"
    raise xs.InputError(f"{source} has no rows{within} (--allow-empty accepts this)")


def _workers(options: RunOptions, copies: int, files: int) -> int:
    """How many engines there is work for: copies are divided, or else files.

    Digests need all files of a copy in one engine, where its accounts are.
    """
    return min(options.workers, copies if copies > 1 or options.answers == "digest" else files)


def _check(options: RunOptions) -> None:
    rules_named(options.rules)
    if options.speed is not None and not SLOWEST <= options.speed <= FASTEST:
        raise xs.InputError(
            f"--speed must be max, or from {SLOWEST} to {FASTEST:,.0f}, not {options.speed:g}"
        )
    if options.minutes is not None and not 1 <= options.minutes <= MOST_MINUTES:
        raise xs.InputError(
            f"--minutes must be from 1 to {MOST_MINUTES:,}, not {options.minutes:,}"
        )
    if options.workers < 1:
        raise xs.InputError(f"--workers must be a positive number, not {options.workers}")
    if options.answers not in ("write", "digest"):
        raise xs.InputError(f"--answers must be write or digest, not {options.answers!r}")
    if options.form not in FORMATS:
        raise xs.InputError(f"--format must be csv or parquet, not {options.form!r}")
    if options.scheduler not in xs.SCHEDULER_NAMES:
        known = ", ".join(xs.SCHEDULER_NAMES)
        raise xs.InputError(f"--scheduler must be one of {known}, not {options.scheduler!r}")
    xs.memory_manager(options.memory)  # says which there are
    if options.answers != "digest" and (options.keep_state or options.from_state):
        raise xs.InputError("--keep-state and --from-state require --answers digest")
    if options.keep_state and (options.expressways or options.minutes is None):
        raise xs.InputError("--keep-state requires --minutes and cannot be used with --expressways")
    if options.rules != "paper" and (options.keep_state or options.from_state):
        raise xs.InputError("--keep-state and --from-state require --rules paper")


def _divide(
    source: Path, copies: list[Copy], workers: int, rejects: RejectWriter, schedule: Schedule,
    history: History, options: RunOptions,
) -> list[Worker]:  # fmt: skip
    """Files are dealt out to the workers, or copies of all files."""
    engines = []
    manager = xs.memory_manager(options.memory)
    for number in range(workers):
        own = copies if len(copies) == 1 else copies[number::workers]
        readers = list(enumerate(open_input(source)))
        if len(copies) == 1:
            readers = readers[number::workers]
        if options.answers == "digest":  # nothing passes between engines
            manager = xs.memory_manager(options.memory)
        told = rejects if own[0] == ORIGINAL else None  # once is enough
        feeds = [Feed(reader, file, schedule, number, told, manager) for file, reader in readers]
        engines.append(Worker(feeds, own, history, options))
    return engines


class _Look:
    """Now and then: where the run is, for the timeline and whoever watches."""

    def __init__(
        self, taker: AnswerSink, timeline: Timeline, progress: Callable[[RunResult], None] | None,
        stop_when_late: bool = False,
    ) -> None:  # fmt: skip
        self._taker, self._timeline, self._progress = taker, timeline, progress
        self._stop_when_late = stop_when_late
        self.workers: list[Worker] = []
        self.outputs: list[DigestOutput] = []

    def __call__(self, _: xs.Run | None = None, last: bool = False) -> None:
        result, schedule = self._taker.result, self._taker.schedule
        if schedule.stop.at_once:
            schedule.cut.set()
        late = self._taker.delays.first_late
        if late is not None:
            result.first_late = late.sentence()
            if self._stop_when_late:
                schedule.stop.set()
        feeds = [feed for worker in self.workers for feed in worker.feeds]
        result.idle_s = min(feed.idle_s for feed in feeds)
        result.rows = sum(worker.rows for worker in self.workers)
        result.lag_s = max(feed.lag_s for feed in feeds)
        result.worst_lag_s = max(feed.worst_lag_s for feed in feeds)
        answers = sum(result.answers.values())
        self._timeline.note(result.stream_seconds, result.lag_s, result.rows, answers, last)
        if self._progress is not None:
            self._progress(result)


def _write(workers: list[Worker], taker: AnswerSink, look: _Look) -> None:
    """All answers to the writer, in the order of time."""
    hub = connect_writer(workers, taker.take, taker.at_least)
    _execute(workers, None if len(workers) == 1 else hub, taker, look)


def _digest(
    workers: list[Worker], taker: AnswerSink, look: _Look, kept: KeptState | None
) -> None:  # fmt: skip
    """Every worker by itself."""
    look.outputs = [DigestOutput(worker, taker.take_told) for worker in workers]
    _execute(workers, None, taker, look, kept.of if kept is not None else None)
    runs = [(w.done, w.network.stages) for w in workers if w.done is not None]
    taker.result.stage_ns = stage_nanoseconds(runs, taker.result.reports)
    taker.result.unanswerable = sum(output.unanswerable for output in look.outputs)


#: What the kernels of a worker begin with.
_State = Callable[[Worker], Any]


def _execute(
    workers: list[Worker], hub: Network | None, taker: AnswerSink, look: _Look,
    state: _State | None = None,
) -> None:  # fmt: skip
    """Run the workers, and a hub beside them, to their end; everything is written then."""
    result, schedule = taker.result, taker.schedule
    look.workers = workers
    gc.collect()
    gc.freeze()  # what was loaded and compiled is not looked through again and again
    try:
        with interruptible(schedule.stop):
            if len(workers) == 1:
                workers[0].job(schedule.cut, state, look)
            else:
                _run_together(workers, hub, schedule, look, state)
        result.interrupted = schedule.stop.is_set()
        result.interrupted_by_user = schedule.stop.by_user
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # a file, not an operator, is to blame
            raise error.__cause__ from None
        raise
    finally:
        schedule.give_up()
        taker.close()
        result.wall_seconds = schedule.time.wall_s()
        gc.unfreeze()
    look(last=True)
    result.reports = sum(worker.reports for worker in workers if worker.done is not None)
    result.implausible_speeds = sum(f.implausible for worker in workers for f in worker.feeds)
    result.requests = sum(list(result.answers.values())[2:])


def _run_together(
    workers: list[Worker], hub: Network | None, schedule: Schedule, look: _Look,
    state: _State | None,
) -> None:  # fmt: skip
    """Every engine in a thread of its own; this one watches."""

    def give_up() -> None:
        schedule.cut.set()
        schedule.give_up()
        for worker in workers:
            for channel in worker.channels:
                channel.abandon()

    def run_hub(_: threading.Event) -> xs.Run:
        assert hub is not None
        manager = workers[0].feeds[0].manager
        scheduler = workers[0].options.scheduler
        return hub.query.run(scheduler, manager, HUB_BURST, stop=schedule.cut)

    def job(worker: Worker) -> xs.Job:
        return lambda _: worker.job(schedule.cut, state)

    jobs = [*([run_hub] if hub is not None else []), *map(job, workers)]
    xs.run_together(jobs, look, give_up)


def _keep(
    source: Path, out: Path, outputs: list[DigestOutput], result: RunResult, options: RunOptions
) -> None:
    """The digests, whether copies agree, and the state if wanted."""
    workers = [output.worker for output in outputs]
    minutes = max(feed.second for worker in workers for feed in worker.feeds) // 60 + 1
    expressways = sum(len(worker.copies) * len(worker.feeds) for worker in workers)
    result.digests = np.zeros((expressways, minutes, KINDS, DIGEST_WIDTH), np.uint64)
    for output in outputs:
        for expressway, digests in output.digests(minutes):
            result.digests[expressway] = digests
    write_digests(out / "digests.parquet", result.digests)
    if result.interrupted:  # workers have come to different seconds
        return
    files = len(workers[0].feeds)
    wrong, first = differences(result.digests, result.digests[:files])
    result.copies_differ = wrong
    result.first_differences = [difference.sentence() for difference in first]
    if options.keep_state is not None and options.minutes is not None:
        minute = min(options.minutes, minutes)  # the stream may have ended before
        keep_state(options.keep_state, source, workers[0], minute)
