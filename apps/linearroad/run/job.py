"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import xstream as xs
from linearroad.generation.manifest import read_manifest
from linearroad.input import open_input, unverified
from linearroad.network import one_expressway
from linearroad.operators.digests import DIGEST_WIDTH
from linearroad.output.digests import differences, write_digests
from linearroad.output.sink import AnswerSink, RunResult
from linearroad.output.summary import RunOptions, write_summary
from linearroad.output.writers import (
    CONTINUED,
    FORMATS,
    RESULTS,
    RejectWriter,
    formats_of,
)
from linearroad.rating.memory import check_memory
from linearroad.road_view import show_road
from linearroad.rules import rules_named
from linearroad.run.copies import copies_of
from linearroad.run.engine import DigestOutput, Engine, connect_writer
from linearroad.run.feed import RAW, Feed
from linearroad.run.share import Share
from linearroad.run.stages import stage_nanoseconds
from linearroad.run.state import KeptState, keep_state, read_state
from linearroad.schema import KINDS
from linearroad.tables.history import History
from xstream.console.folder import result_folder
from xstream.console.stop import Stop, interruptible
from xstream.console.timeline import Timeline, attributed, read_timeline
from xstream.io.page_checksums import unverified_sentence
from xstream.io.schedule import NO_LIMIT, Schedule
from xstream.recovery.generations import has_checkpoint, latest_owners

__all__ = ["CHECKPOINTS", "Part", "RunOptions", "RunResult", "check_options", "plan", "run"]

#: Slower runs would take years; in faster ones the Emit of answers is meaningless.
SLOWEST, FASTEST = 0.001, 1e6
MOST_MINUTES = 2**31 // 60
#: The folder of checkpoints in that of the output.
CHECKPOINTS = "checkpoints"


@dataclass
class Part:
    """A share of a run on a cluster."""

    share: Share
    #: Waits for the common start of all shares; returns how many seconds ago it was.
    gate: Callable[[], float] | None = None
    #: Ends the run early, when set.
    stop: Stop = field(default_factory=Stop)
    #: The response times, once it has run.
    delays: dict[str, Any] = field(default_factory=dict)


def plan(rules: str = "paper") -> xs.Query:
    """The query network, for `to_dot`."""
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable([], out=RAW), name="rows")
    one_expressway(query, rows, rules_named(rules))
    return query


def run(
    source: Path,
    out: Path,
    history: History,
    options: RunOptions,
    progress: Callable[[RunResult], None] | None = None,
    part: Part | None = None,
    live: xs.Live | None = None,
) -> RunResult:
    """Run the query over an input, or a part of it; writes answers, rejects and a summary."""
    check_options(options)
    copies = copies_of(source, options.expressways)
    readers = open_input(source, options.rules, part.share.numbers if part else None)
    copies = part.share.of(copies) if part else copies
    first = part.share.first_file if part else 0
    files, unchecked = len(readers), [*unverified(readers), *history.unverified]
    if len(copies) > 1 and part is None:
        check_memory(source, len(copies) * files, history.nbytes)
    kept = _kept_state(source, options)
    begin_s = 60 * kept.minute if kept is not None else 0
    limit_s = NO_LIMIT if options.minutes is None else 60 * options.minutes
    schedule = Schedule(xs.io.StreamTime(options.speed, begin_s), limit_s)
    if part is not None:
        schedule.gate, schedule.stop = part.gate, part.stop
    try:
        go_on = options.resume and has_checkpoint(out / CHECKPOINTS)
        if not go_on:
            history.ready()  # before the folder is changed
        with result_folder(out, source, RESULTS, CONTINUED if go_on else ()):
            rejects = RejectWriter(out / "rejects.csv", files > 1, go_on)
            timeline = Timeline(out / "timeline.csv", schedule.time.wall_s, go_on)
            with closing(rejects), closing(timeline):
                taker = _answer_sink(out, rejects, schedule, options, files, go_on)
                if unchecked:
                    taker.result.warnings.append(unverified_sentence(unchecked))
                look = _Look(taker, timeline, progress, options.stop_when_late)
                manager = xs.memory_manager(options.memory)
                feeds = [
                    Feed(reader, file, schedule, rejects, manager, history.ready, len(copies))
                    for file, reader in enumerate(readers, first)
                ]
                _look_ahead(feeds, out / CHECKPOINTS, go_on)
                engine = Engine(feeds, copies, history, options)
                if options.checkpoint_s is not None:
                    engine.checkpoints = out / CHECKPOINTS
                if live is not None:
                    show_road(live, engine, taker.delays)
                # A checkpoint has everything that comes of a saved state.
                _answer(engine, taker, look, source, out, None if go_on else kept, options)
            result = taker.result
            _conclude(result, source, out, rejects, options)
            if options.speed is not None and (worst := taker.delays.worst)[0] >= 0:
                result.longest = attributed(read_timeline(out / "timeline.csv"), *worst)
            write_summary(out / "summary.json", result, options, files, begin_s)
            if part is not None:
                part.delays = taker.delays.save_state()
            return result
    except OSError as error:  # of writing; errors of reading are converted where they occur
        raise xs.InputError(f"{out} cannot be written: {error.strerror}") from error


def _answer(
    engine: Engine, taker: AnswerSink, look: _Look, source: Path, out: Path,
    kept: KeptState | None, options: RunOptions,
) -> None:  # fmt: skip
    """Run the query; its answers are written, or their digests."""
    if options.answers == "digest":
        output = DigestOutput(engine, taker.take_counts)
        _execute(engine, taker, look, None if kept is None else kept.of(engine))
        _keep_digests(source, out, output, taker.result, options)
    else:
        connect_writer(engine, taker.take, taker.at_least)
        _execute(engine, taker, look)


def _look_ahead(feeds: list[Feed], checkpoints: Path, go_on: bool) -> None:
    """Read the rows from which a run will go on, while the query is declared and compiled."""
    if not go_on:
        return
    owners = latest_owners(checkpoints)
    for feed in feeds:
        feed.look_ahead(owners.get(f"rows {feed.number}"))


def _kept_state(source: Path, options: RunOptions) -> KeptState | None:
    """Read the saved state to begin with; refuses options that do not go with a state."""
    if options.keep_state is not None:
        read_manifest(source)  # a state requires generated traffic
    if options.from_state is None:
        return None
    kept = read_state(options.from_state, source)
    if options.minutes is not None and options.minutes <= kept.minute:
        raise xs.InputError(
            f"--minutes must be greater than {kept.minute}, the minute of the saved state, "
            f"not {options.minutes}"
        )
    return kept


def _answer_sink(
    out: Path,
    rejects: RejectWriter,
    schedule: Schedule,
    options: RunOptions,
    files: int,
    go_on: bool,
) -> AnswerSink:
    """The sink of all answers, with a writer of a new file or of one that is continued."""
    writer: Any = None
    if options.answers != "digest":
        write: Any = formats_of(options.rules)[options.form]
        path = out / f"output.{options.form}"
        writer = write(path, True) if go_on else write(path)
    taker = AnswerSink(writer, schedule, options.rules)
    taker.options = _identity(options, files)
    taker.parts |= {"rejects": rejects}
    if isinstance(writer, xs.Recoverable):
        taker.parts["answers"] = writer
    return taker


def _identity(options: RunOptions, files: int) -> dict[str, Any]:
    """The options that decide what the answers are."""
    return {
        "--rules": options.rules, "--minutes": options.minutes, "--format": options.form,
        "--answers": options.answers, "--expressways": options.expressways,
        "--speed": options.speed, "input files": files,
    }  # fmt: skip


def _conclude(
    result: RunResult, source: Path, out: Path, rejects: RejectWriter, options: RunOptions
) -> None:
    """Add rejects and warnings to the result; raises InputError if no row could be used."""
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


def check_options(options: RunOptions) -> None:
    """Raise an error about the first option that is not valid."""
    rules_named(options.rules, options.tariff)
    if options.speed is not None and not SLOWEST <= options.speed <= FASTEST:
        raise xs.InputError(
            f"--speed must be max, or from {SLOWEST} to {FASTEST:,.0f}, not {options.speed:g}"
        )
    if options.minutes is not None and not 1 <= options.minutes <= MOST_MINUTES:
        raise xs.InputError(
            f"--minutes must be from 1 to {MOST_MINUTES:,}, not {options.minutes:,}"
        )
    if options.threads < 1:
        raise xs.InputError(f"--threads must be a positive number, not {options.threads}")
    if options.answers not in ("write", "digest"):
        raise xs.InputError(f"--answers must be write or digest, not {options.answers!r}")
    if options.form not in FORMATS:
        raise xs.InputError(f"--format must be csv or parquet, not {options.form!r}")
    if options.scheduler not in xs.SCHEDULER_NAMES:
        known = ", ".join(xs.SCHEDULER_NAMES)
        raise xs.InputError(f"--scheduler must be one of {known}, not {options.scheduler!r}")
    xs.memory_manager(options.memory)  # raises an error that lists the valid names
    if options.answers != "digest" and (options.keep_state or options.from_state):
        raise xs.InputError("--keep-state and --from-state require --answers digest")
    if options.keep_state and (options.expressways or options.minutes is None):
        raise xs.InputError("--keep-state requires --minutes and cannot be used with --expressways")
    if options.rules != "paper" and (options.keep_state or options.from_state):
        raise xs.InputError("--keep-state and --from-state require --rules paper")
    if options.checkpoint_s is None:
        if options.resume:
            raise xs.InputError("--resume requires --checkpoint-s, as the run before it had")
        return
    if not options.checkpoint_s > 0:
        raise xs.InputError(
            f"--checkpoint-s must be a positive number of seconds, not {options.checkpoint_s:g}"
        )


class _Look:
    """Samples the progress of the run, for the timeline and the progress display."""

    def __init__(
        self, taker: AnswerSink, timeline: Timeline, progress: Callable[[RunResult], None] | None,
        stop_when_late: bool = False,
    ) -> None:  # fmt: skip
        self._taker, self._timeline, self._progress = taker, timeline, progress
        self._stop_when_late = stop_when_late
        self.engine: Engine | None = None
        #: Set if the run is to stop at a checkpoint, from which it can go on.
        self.suspend = Stop()

    def __call__(self, _: xs.Run | None = None, last: bool = False) -> None:
        result, schedule = self._taker.result, self._taker.schedule
        if schedule.stop.at_once or self.suspend.is_set():
            schedule.cut.set()
        late = self._taker.delays.first_late
        if late is not None:
            result.first_late = late.sentence()
            if self._stop_when_late:
                schedule.stop.set()
        assert self.engine is not None
        paces = [feed.pace for feed in self.engine.feeds]
        result.idle_s = min(pace.idle_s for pace in paces)
        result.rows = self.engine.rows
        result.lag_s = max(pace.lag_s for pace in paces)
        result.worst_lag_s = max(pace.worst_lag_s for pace in paces)
        answers = sum(result.answers.values())
        self._timeline.note(result.stream_seconds, result.lag_s, result.rows, answers, last)
        if self._progress is not None:
            self._progress(result)


def _execute(engine: Engine, taker: AnswerSink, look: _Look, state: Any = None) -> None:
    """Run the query to its end and write all output."""
    result, schedule = taker.result, taker.schedule
    look.engine = engine
    gc.freeze()  # exclude loaded and compiled objects from collections
    gc.enable()
    try:
        stop = schedule.stop if engine.checkpoints is None else look.suspend
        with interruptible(stop):
            engine.run(schedule.cut, state, look)
        result.interrupted = schedule.stop.is_set() or look.suspend.is_set()
        result.interrupted_by_user = stop.by_user
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # caused by a file, not by an operator
            raise error.__cause__ from None
        raise
    finally:
        schedule.stop.set()
        taker.close()
        result.wall_seconds = schedule.time.wall_s()
        gc.unfreeze()
    look(last=True)
    assert engine.done is not None
    if engine.done.checkpoints is not None:
        result.checkpoints = asdict(engine.done.checkpoints)
        result.warnings += result.checkpoints["damaged"]
    result.reports = engine.reports
    result.implausible_speeds = sum(feed.implausible for feed in engine.feeds)
    result.requests = sum(list(result.answers.values())[2:])


def _keep_digests(
    source: Path, out: Path, output: DigestOutput, result: RunResult, options: RunOptions
) -> None:
    """Store digests, differences of copies, the time of each stage and, if requested, the state."""
    engine = output.engine
    assert engine.done is not None
    result.stage_ns = stage_nanoseconds([(engine.done, engine.network.stages)], result.reports)
    result.unanswerable = output.unanswerable
    minutes = max(feed.pace.second for feed in engine.feeds) // 60 + 1
    expressways = len(engine.copies) * len(engine.feeds)
    result.digests = np.zeros((expressways, minutes, KINDS, DIGEST_WIDTH), np.uint64)
    numbers = []
    for place, (number, digests) in enumerate(output.digests(minutes)):
        result.digests[place] = digests
        numbers.append(number)
    write_digests(out / "digests.parquet", result.digests, numbers)
    if result.interrupted:  # files have stopped at different seconds
        return
    wrong, first = differences(result.digests, result.digests[: len(engine.feeds)])
    result.copies_differ = wrong
    result.first_differences = [difference.sentence() for difference in first]
    if options.keep_state is not None and options.minutes is not None:
        minute = min(options.minutes, minutes)  # the stream may be shorter
        keep_state(options.keep_state, source, engine, minute)
