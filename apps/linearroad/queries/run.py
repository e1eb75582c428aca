"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import xstream as xs
from linearroad.manifest import read_manifest
from linearroad.queries.answering import AnswerSink, RunResult, join_answers
from linearroad.queries.checksums import unverified_sentence
from linearroad.queries.comparing import differences, write_digests
from linearroad.queries.copying import ORIGINAL, Copy, copies_of
from linearroad.queries.digesting import DigestingWorker
from linearroad.queries.feeding import Backlog, Clock, Convoy, RowFeed
from linearroad.queries.folder import result_folder
from linearroad.queries.history import History
from linearroad.queries.interrupts import interruptible
from linearroad.queries.keeping import keep_state, read_state
from linearroad.queries.memory import check_memory
from linearroad.queries.network import RAW, RULES, build
from linearroad.queries.operators.digests import DIGEST_WIDTH, KINDS
from linearroad.queries.reading import RowReader, open_input, unverified
from linearroad.queries.sharding import BURST, HandingWorker, Worker, settled
from linearroad.queries.stages import stage_nanoseconds
from linearroad.queries.summary import RunOptions, write_summary
from linearroad.queries.timeline import Timeline, attributed, read_timeline
from linearroad.queries.writing import FORMATS, RejectWriter, answer_writer

__all__ = ["RunOptions", "RunResult", "plan", "run"]

LOOK_EVERY_S = 0.05  # at workers that need nothing of this thread
#: Slower, and a stream takes years; faster, and the time at which answers leave means nothing.
SLOWEST, FASTEST = 0.001, 1e6
MOST_MINUTES = 2**31 // 60


def plan(rules: str = "paper") -> xs.Query:
    """The query network, for `to_dot`."""
    _check_rules(rules)
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable([], out=RAW), name="rows")
    network = build(rows, History(), rules)
    join_answers(network, Clock(None)).count(name="sink")
    for stream in network.rejects:
        stream.count()
    return query


def _check_rules(rules: str) -> None:
    if rules not in RULES:
        raise xs.InputError(f"rules are {', '.join(RULES)}, not {rules!r}")


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
            f"the state is that of minute {kept.minute}, so --minutes is more than that, "
            f"not {options.minutes}"
        )
    if options.keep_state is not None:
        read_manifest(source)  # only generated traffic can be gone on with
    workers = _workers(options, len(copies), files)
    begin_s = 60 * kept.minute if kept is not None else 0
    clock = Clock(options.speed, begin_s, workers)
    try:
        with result_folder(out, source):
            rejects = RejectWriter(out / "rejects.csv", files > 1)
            with closing(rejects), closing(Timeline(out / "timeline.csv", clock)) as timeline:
                taker = AnswerSink(answer_writer(out, options.form, options.answers), clock)
                if unchecked:
                    taker.result.warnings.append(unverified_sentence(unchecked))
                look = _Look(taker, timeline, progress, options.stop_when_late)
                if options.answers == "digest":
                    shares = _divide(source, copies, workers, rejects, clock, options)
                    engines = [
                        DigestingWorker(
                            share.feeds, share.copies, history, options, taker.take_told,
                            None if kept is None else kept.of_copies(share.copies),
                        )
                        for share in shares
                    ]  # fmt: skip
                    _digest(engines, taker, look)
                    _keep(source, out, engines, taker.result, options)
                elif options.rules != "paper" or files == len(copies) == 1:
                    feed = _feed(open_input(source), rejects, clock, options)
                    _answer_whole(feed, history, taker, look, options)
                else:
                    shares = _divide(source, copies, workers, rejects, clock, options)
                    _answer(
                        [HandingWorker(s.feeds, s.copies, history, options) for s in shares],
                        taker, look, options,
                    )  # fmt: skip
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
    _check_rules(options.rules)
    if options.speed is not None and not SLOWEST <= options.speed <= FASTEST:
        raise xs.InputError(
            f"--speed must be max, or from {SLOWEST} to {FASTEST:,.0f}, not {options.speed:g}"
        )
    if options.minutes is not None and not 1 <= options.minutes <= MOST_MINUTES:
        raise xs.InputError(
            f"--minutes must be from 1 to {MOST_MINUTES:,}, not {options.minutes:,}"
        )
    if options.workers < 1:
        raise xs.InputError(f"--workers is a positive number, not {options.workers}")
    if options.workers > 1 and options.rules != "paper":
        raise xs.InputError(f"rules {options.rules!r} run on one worker")
    if options.answers not in ("write", "digest"):
        raise xs.InputError(f"--answers is write or digest, not {options.answers!r}")
    if options.form not in FORMATS:
        raise xs.InputError(f"answers are written as csv or parquet, not {options.form!r}")
    if options.scheduler not in xs.SCHEDULER_NAMES:
        known = ", ".join(xs.SCHEDULER_NAMES)
        raise xs.InputError(f"--scheduler is one of {known}, not {options.scheduler!r}")
    xs.memory_manager(options.memory)  # says which there are
    if options.answers != "digest" and (options.keep_state or options.from_state):
        raise xs.InputError("a state is kept and gone on from with --answers digest")
    if options.keep_state and (options.expressways or options.minutes is None):
        raise xs.InputError("a state is kept with --minutes, and without --expressways")
    if options.expressways is None and options.answers == "write":
        return
    if options.rules != "paper" or options.scheduler != "df":
        raise xs.InputError("copies of expressways and digests need rules paper and scheduler df")


@dataclass(frozen=True)
class _Share:
    """What one worker works on: some files, and which copies of them."""

    feeds: list[RowFeed]
    copies: list[Copy]


def _feed(
    readers: list[RowReader], rejects: RejectWriter | None, clock: Clock, options: RunOptions
) -> RowFeed:
    manager = xs.memory_manager(options.memory)
    return RowFeed(readers, rejects, clock, options.minutes, Convoy(clock), Backlog(), manager)


def _divide(
    source: Path, copies: list[Copy], workers: int, rejects: RejectWriter, clock: Clock,
    options: RunOptions,
) -> list[_Share]:  # fmt: skip
    """Files are dealt out to the workers, or copies of all files."""
    shares = []
    for number in range(workers):
        own = copies if len(copies) == 1 else copies[number::workers]
        readers = list(enumerate(open_input(source)))
        if len(copies) == 1:
            readers = readers[number::workers]
        common = (options.minutes, Convoy(clock), Backlog(), xs.memory_manager(options.memory))
        told = rejects if own[0] == ORIGINAL else None  # once is enough
        feeds = [RowFeed([reader], told, clock, *common, file) for file, reader in readers]
        shares.append(_Share(feeds, own))
    return shares


class _Look:
    """Now and then: where the run is, for the timeline and whoever watches."""

    def __init__(
        self, taker: AnswerSink, timeline: Timeline, progress: Callable[[RunResult], None] | None,
        stop_when_late: bool = False,
    ) -> None:  # fmt: skip
        self._taker, self._timeline, self._progress = taker, timeline, progress
        self._stop_when_late = stop_when_late
        self.feeds: list[RowFeed] = []
        self.workers: list[Worker] = []

    def __call__(self, _: xs.Run | None = None, last: bool = False) -> None:
        result = self._taker.result
        clock = self._taker.clock
        if clock.stop.at_once:
            clock.cut.set()
            for worker in self.workers:
                worker.stop.set()
        late = self._taker.delays.first_late
        if late is not None:
            result.first_late = late.sentence()
            if self._stop_when_late:
                clock.stop.set()
        result.idle_s = min(feed.convoy.idle_s for feed in self.feeds)
        result.rows = sum(worker.rows for worker in self.workers) or self.feeds[0].rows
        result.lag_s = max(feed.lag_s for feed in self.feeds)
        result.worst_lag_s = max(feed.worst_lag_s for feed in self.feeds)
        self._timeline.note(result, last)
        if self._progress is not None:
            self._progress(result)


def _answer_whole(
    feed: RowFeed, history: History, taker: AnswerSink, look: _Look, options: RunOptions
) -> None:
    """The whole query in one engine."""
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable(feed.tuples, out=RAW), name="rows")
    network = build(rows, history, options.rules)
    feed.end_rejects_in_sinks(network.rejects)
    taker.end(join_answers(network, taker.clock))
    look.feeds = [feed]
    with _running([], taker, look):
        done = query.run(
            options.scheduler, feed.manager, BURST, progress=look, stop=taker.clock.cut
        )
        taker.end_run(cut=done.stopped)
    # Second reports are rejected before.
    taker.result.reports = done.stats["segment statistics"].samples


def _answer(
    workers: list[HandingWorker], taker: AnswerSink, look: _Look, options: RunOptions
) -> None:
    """A part of the query for each file; what all of them hand over is put together."""
    query = xs.Query("linear road")
    taker.end(settled(query, workers, taker.clock))
    with _running(workers, taker, look):
        done = query.run(
            options.scheduler, options.memory, BURST, progress=look, stop=taker.clock.cut
        )
        taker.end_run(cut=done.stopped)


def _digest(workers: list[DigestingWorker], taker: AnswerSink, look: _Look) -> None:
    """Every worker by itself; this thread only watches."""
    with _running(workers, taker, look):
        for worker in workers:
            while worker.is_alive():
                worker.join(LOOK_EVERY_S)
                look()
        for worker in workers:
            if worker.error is not None:
                raise worker.error
    runs = [worker.done for worker in workers if worker.done is not None]
    taker.result.stage_ns = stage_nanoseconds(runs, taker.result.reports)
    taker.result.unanswerable = sum(worker.unanswerable for worker in workers)


@contextmanager
def _running(workers: Sequence[Worker], taker: AnswerSink, look: _Look) -> Iterator[None]:
    """Workers start, whatever else runs inside, and all has ended in the end."""
    result = taker.result
    look.workers = list(workers)
    look.feeds = look.feeds or [feed for worker in workers for feed in worker.feeds]
    gc.collect()
    gc.freeze()  # what was loaded and compiled is not looked through again and again
    for worker in workers:
        worker.start()
    try:
        with interruptible(taker.clock.stop):
            yield
        result.interrupted = taker.clock.stop.is_set()
        result.interrupted_by_user = taker.clock.stop.by_user
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # a file, not an operator, is to blame
            raise error.__cause__ from None
        raise
    finally:
        taker.clock.give_up()
        for worker in workers:
            worker.stop.set()
            worker.join()
        taker.close()
        result.wall_seconds = taker.clock.wall_seconds()
        gc.unfreeze()
    look(last=True)
    result.reports = sum(worker.reports for worker in workers)
    result.implausible_speeds = sum(feed.implausible for feed in look.feeds)
    result.requests = sum(list(result.answers.values())[2:])


def _keep(
    source: Path, out: Path, workers: list[DigestingWorker], result: RunResult, options: RunOptions
) -> None:
    """The digests, whether copies agree, and the state if wanted."""
    minutes = max(feed.second for worker in workers for feed in worker.feeds) // 60 + 1
    expressways = sum(len(worker.copies) * len(worker.feeds) for worker in workers)
    result.digests = np.zeros((expressways, minutes, KINDS, DIGEST_WIDTH), np.uint64)
    for worker in workers:
        for expressway, digests in worker.digests(minutes):
            result.digests[expressway] = digests
    write_digests(out / "digests.parquet", result.digests)
    if result.interrupted:  # workers have come to different seconds
        return
    files = len(workers[0].feeds)
    wrong, first = differences(result.digests, result.digests[:files])
    result.copies_differ = wrong
    result.first_differences = [difference.sentence() for difference in first]
    if options.keep_state is not None and options.minutes is not None:
        assert workers[0].done is not None
        minute = min(options.minutes, minutes)  # the stream may have ended before
        keep_state(options.keep_state, source, workers[0].done, files, minute)
