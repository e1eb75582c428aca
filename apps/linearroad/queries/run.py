"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import xstream as xs
from linearroad.queries.answering import AnswerSink, RunResult, join_answers
from linearroad.queries.feeding import Backlog, Clock, Convoy, RowFeed
from linearroad.queries.history import History
from linearroad.queries.network import RAW, RULES, build
from linearroad.queries.reading import RowReader, open_input
from linearroad.queries.sharding import Worker, settled
from linearroad.queries.summary import RunOptions, write_summary
from linearroad.queries.timeline import Timeline
from linearroad.queries.writing import RejectWriter, answer_writer

__all__ = ["RunOptions", "RunResult", "plan", "run"]

BURST = 1  # chunks that are let in before all is worked off: they stay in the cache


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
    _check_rules(options.rules)
    readers = open_input(source)
    workers = _worker_count(options, len(readers))
    try:
        out.mkdir(parents=True, exist_ok=True)
        rejects = RejectWriter(out / "rejects.csv", len(readers) > 1)
        clock = Clock(options.speed)
        with closing(rejects), closing(Timeline(out / "timeline.csv", clock)) as timeline:
            taker = AnswerSink(answer_writer(out, options.form), clock)
            feeds = _feeds(readers, workers, rejects, clock, options)
            query, shards = _query(feeds, history, taker, options)
            every = [feed for some in feeds for feed in some]
            _execute(query, every, shards, taker, timeline, options, progress)
        taker.result.rejects = dict(sorted(rejects.by_reason.items()))
        write_summary(out / "summary.json", taker.result, options, workers)
        return taker.result
    except OSError as error:  # reading has its own sentences
        raise xs.InputError(f"{out} cannot be written: {error.strerror}") from error


def _feeds(
    readers: list[RowReader], workers: int, rejects: RejectWriter, clock: Clock,
    options: RunOptions,
) -> list[list[RowFeed]]:  # fmt: skip
    """The feeds of each worker: files apart where the rules let expressways be worked on apart."""
    if options.rules != "paper" or len(readers) == 1:
        return [[RowFeed(readers, rejects, clock, options.minutes, Convoy(clock), Backlog())]]
    dealt = []
    for worker in range(workers):
        convoy, backlog = Convoy(clock), Backlog()
        dealt.append(
            [
                RowFeed([reader], rejects, clock, options.minutes, convoy, backlog)
                for reader in readers[worker::workers]
            ]
        )
    return dealt


def _query(
    feeds: list[list[RowFeed]],
    history: History,
    taker: AnswerSink,
    options: RunOptions,
) -> tuple[xs.Query, list[Worker]]:
    """The query that ends in the output, and the workers that it gathers from, if any."""
    query = xs.Query("linear road")
    if feeds != [feeds[0][:1]]:
        workers = [Worker(some, history, options, BURST) for some in feeds]
        taker.end(settled(query, workers, taker.clock))
        return query, workers
    feed = feeds[0][0]
    rows = query.source(xs.io.iterable(feed.tuples, out=RAW), name="rows")
    network = build(rows, history, options.rules)
    feed.end_rejects_in_sinks(network.rejects)
    taker.end(join_answers(network, taker.clock))
    return query, []


def _worker_count(options: RunOptions, files: int) -> int:
    if options.workers < 1:
        raise xs.InputError(f"--workers is a positive number, not {options.workers}")
    if options.workers > 1 and options.rules != "paper":
        raise xs.InputError(f"rules {options.rules!r} run on one worker")
    return min(options.workers, files)  # a file is not divided


def _execute(
    query: xs.Query, feeds: list[RowFeed], shards: list[Worker], taker: AnswerSink,
    timeline: Timeline, options: RunOptions, progress: Callable[[RunResult], None] | None,
) -> None:  # fmt: skip
    result = taker.result

    def look(_: xs.Run | None, last: bool = False) -> None:
        result.rows = sum(feed.rows for feed in feeds)
        result.lag_s = max(feed.lag_s for feed in feeds)
        result.worst_lag_s = max(feed.worst_lag_s for feed in feeds)
        timeline.note(result, last)
        if progress is not None:
            progress(result)

    gc.collect()
    gc.freeze()  # what was loaded and compiled is not looked through again and again
    for shard in shards:
        shard.start()
    try:
        with _interruptible(taker.clock.stop):
            done = query.run(options.scheduler, options.memory, BURST, progress=look)
        result.interrupted = taker.clock.stop.is_set()
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # a file, not an operator, is to blame
            raise error.__cause__ from None
        raise
    finally:
        for shard in shards:
            shard.stop.set()
            shard.join()
        taker.close()
        result.wall_seconds = taker.clock.wall_seconds()
        gc.unfreeze()
    look(None, last=True)
    if shards:
        result.reports = sum(shard.reports for shard in shards)
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
