"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import xstream as xs
from linearroad.queries.answering import AnswerSink, RunResult, join_answers
from linearroad.queries.copying import ORIGINAL, Copy, copies_of
from linearroad.queries.feeding import Backlog, Clock, Convoy, RowFeed
from linearroad.queries.history import History
from linearroad.queries.network import RAW, RULES, build
from linearroad.queries.reading import RowReader, open_input
from linearroad.queries.sharding import BURST, Worker, digests_in, settled
from linearroad.queries.summary import RunOptions, write_summary
from linearroad.queries.timeline import Timeline
from linearroad.queries.writing import FORMATS, RejectWriter, answer_writer

__all__ = ["RunOptions", "RunResult", "plan", "run"]


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
    files = len(open_input(source))
    workers = min(options.workers, len(copies) if len(copies) > 1 else files)
    history = history.copied([copy.xway_by for copy in copies], [copy.vid_by for copy in copies])
    try:
        out.mkdir(parents=True, exist_ok=True)
        for earlier in ("output.csv", "output.parquet", "summary.json"):
            (out / earlier).unlink(missing_ok=True)  # of a run that this one replaces
        rejects = RejectWriter(out / "rejects.csv", files > 1)
        clock = Clock(options.speed)
        with closing(rejects), closing(Timeline(out / "timeline.csv", clock)) as timeline:
            taker = AnswerSink(answer_writer(out, options.form, options.answers), clock)
            query = xs.Query("linear road")
            if options.rules != "paper" or (files == len(copies) == 1 and taker.writer.keeps):
                shares = [_Share([_feed(open_input(source), rejects, clock, options)], copies)]
                _end_in_output(query, shares[0].feeds[0], history, taker, options)
            else:
                shares = _divide(source, copies, workers, rejects, clock, options)
                _gather(query, shares, history, taker, options)
            _execute(query, shares, taker, timeline, options, progress)
        taker.result.rejects = dict(sorted(rejects.by_reason.items()))
        write_summary(out / "summary.json", taker.result, options, workers, files)
        return taker.result
    except OSError as error:  # reading has its own sentences
        raise xs.InputError(f"{out} cannot be written: {error.strerror}") from error


def _check(options: RunOptions) -> None:
    _check_rules(options.rules)
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
    if options.expressways is None and options.answers == "write":
        return
    if options.rules != "paper" or options.scheduler != "df":
        raise xs.InputError("copies of expressways and digests need rules paper and scheduler df")


@dataclass
class _Share:
    """What one worker works on: some files, and which copies of them."""

    feeds: list[RowFeed]
    copies: list[Copy]
    worker: Worker | None = None

    @property
    def rows(self) -> int:
        """Rows that have been given to the engine, copies included."""
        return len(self.copies) * sum(feed.rows for feed in self.feeds)


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
        readers = open_input(source)
        if len(copies) == 1:
            readers = readers[number::workers]
        common = (options.minutes, Convoy(clock), Backlog(), xs.memory_manager(options.memory))
        told = rejects if own[0] == ORIGINAL else None  # once is enough
        feeds = [RowFeed([reader], told, clock, *common) for reader in readers]
        shares.append(_Share(feeds, own))
    return shares


def _end_in_output(
    query: xs.Query, feed: RowFeed, history: History, taker: AnswerSink, options: RunOptions
) -> None:
    """The whole query in one engine."""
    rows = query.source(xs.io.iterable(feed.tuples, out=RAW), name="rows")
    network = build(rows, history, options.rules)
    feed.end_rejects_in_sinks(network.rejects)
    taker.end(join_answers(network, taker.clock))


def _gather(
    query: xs.Query, shares: list[_Share], history: History, taker: AnswerSink, options: RunOptions
) -> None:
    """A worker for each share, and what all of them hand over."""
    first = 0
    workers = []
    for share in shares:
        share.worker = Worker(share.feeds, share.copies, history, options, first)
        workers.append(share.worker)
        first += len(share.feeds) * len(share.copies)
    if options.answers == "digest":
        digests_in(query, workers, taker)
    else:
        taker.end(settled(query, workers, taker.clock))


def _execute(
    query: xs.Query, shares: list[_Share], taker: AnswerSink, timeline: Timeline,
    options: RunOptions, progress: Callable[[RunResult], None] | None,
) -> None:  # fmt: skip
    result = taker.result
    feeds = [feed for share in shares for feed in share.feeds]
    workers = [share.worker for share in shares if share.worker is not None]

    def look(_: xs.Run | None, last: bool = False) -> None:
        result.rows = sum(share.rows for share in shares)
        result.lag_s = max(feed.lag_s for feed in feeds)
        result.worst_lag_s = max(feed.worst_lag_s for feed in feeds)
        timeline.note(result, last)
        if progress is not None:
            progress(result)

    gc.collect()
    gc.freeze()  # what was loaded and compiled is not looked through again and again
    for worker in workers:
        worker.start()
    try:
        with _interruptible(taker.clock.stop):
            manager = feeds[0].manager if not workers else options.memory
            done = query.run(options.scheduler, manager, BURST, progress=look)
        result.interrupted = taker.clock.stop.is_set()
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # a file, not an operator, is to blame
            raise error.__cause__ from None
        raise
    finally:
        taker.clock.stop.set()
        for worker in workers:
            worker.stop.set()
            worker.join()
        taker.close()
        result.wall_seconds = taker.clock.wall_seconds()
        gc.unfreeze()
    look(None, last=True)
    if workers:
        result.reports = sum(worker.reports for worker in workers)
    else:  # second reports are rejected before
        result.reports = done.stats["segment statistics"].samples
    result.implausible_speeds = sum(feed.implausible for feed in feeds)
    result.requests = sum(list(result.answers.values())[2:])


@contextmanager
def _interruptible(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C ends the stream after the second that is being worked on; again, and it is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_interrupt(_: int, __: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
