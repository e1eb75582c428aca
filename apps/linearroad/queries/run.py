"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import gc
import json
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import xstream as xs
from linearroad.queries.answering import AnswerSink, RunResult, join_answers
from linearroad.queries.feeding import Clock, RowFeed
from linearroad.queries.history import History
from linearroad.queries.network import RAW, RULES, Network, build, settle
from linearroad.queries.operators.answers import as_scheduled
from linearroad.queries.reading import open_input
from linearroad.queries.sharding import HANDED_OVER, Worker, together
from linearroad.queries.timeline import Timeline
from linearroad.queries.writing import RejectWriter, answer_writer

__all__ = ["RunOptions", "RunResult", "plan", "run"]

BURST = 1  # chunks that are let in before all is worked off: they stay in the cache


@dataclass(frozen=True)
class RunOptions:
    """How to run; see `xstream linearroad run --help`."""

    rules: str = "paper"
    speed: float | None = None  # None: as fast as it goes
    minutes: int | None = None
    form: str = "csv"
    scheduler: str = "df"
    memory: str = "refcount-lazy"
    workers: int = 1


def plan(rules: str = "paper") -> xs.Query:
    """The query network, for `to_dot`."""
    _check_rules(rules)
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable([], out=RAW), name="rows")
    network = build(rows, History(), rules)
    join_answers(network, as_scheduled).count(name="sink")
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
    out.mkdir(parents=True, exist_ok=True)
    rejects = RejectWriter(out / "rejects.csv", len(readers) > 1)
    clock = Clock(options.speed)
    taker = AnswerSink(answer_writer(out, options.form), clock)
    feeds = [RowFeed(readers[i::workers], rejects, clock, options.minutes) for i in range(workers)]
    query = xs.Query("linear road")
    shards: list[Worker] = []
    if workers == 1:
        rows = query.source(xs.io.iterable(feeds[0].tuples, out=RAW), name="rows")
        network = build(rows, history, options.rules)
        feeds[0].end_rejects_in_sinks(network.rejects)
    else:
        shards = [
            Worker(feed, options.rules, options.scheduler, options.memory, BURST) for feed in feeds
        ]
        network = _settled(query, shards, history)
    taker.end(network)
    timeline = Timeline(out / "timeline.csv")
    try:
        _execute(query, feeds, shards, taker, timeline, options, progress)
    finally:
        rejects.close()
        timeline.close()
    return _summarise(taker, rejects, options, workers, out)


def _worker_count(options: RunOptions, files: int) -> int:
    if options.workers < 1:
        raise xs.InputError(f"--workers is a positive number, not {options.workers}")
    if options.workers > 1 and options.rules != "paper":
        raise xs.InputError(f"rules {options.rules!r} run on one worker")
    return min(options.workers, files)  # a file is not divided


def _settled(query: xs.Query, shards: list[Worker], history: History) -> Network:
    seconds = query.source(
        xs.io.iterable(lambda: together(shards), out=HANDED_OVER), name="seconds of all workers"
    )
    answered = settle(
        seconds.select("time", "request", name="requests"),
        seconds.select("charge_vid", "charge", name="charges"),
        history,
    )
    return Network(seconds, *answered, ())


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
    taker.clock.start()
    timeline.start()
    began = time.perf_counter()
    for shard in shards:
        shard.start()
    try:
        done = query.run(options.scheduler, options.memory, BURST, progress=look)
        result.interrupted = done.stopped
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # a file, not an operator, is to blame
            raise error.__cause__ from None
        raise
    finally:
        for shard in shards:
            shard.stop.set()
            shard.join()
        taker.close()
        result.wall_seconds = time.perf_counter() - began
        gc.unfreeze()
    look(None, last=True)
    if shards:
        result.reports = sum(shard.reports for shard in shards)
    else:  # second reports are rejected before
        result.reports = done.stats["segment statistics"].samples
    result.implausible_speeds = sum(feed.implausible for feed in feeds)
    result.requests = sum(list(result.answers.values())[2:])


def _summarise(
    taker: AnswerSink, rejects: RejectWriter, options: RunOptions, workers: int, out: Path
) -> RunResult:
    result = taker.result
    result.rejects = dict(sorted(rejects.by_reason.items()))
    summary = {
        **{name: getattr(result, name) for name in result.__dataclass_fields__},
        "reports_per_second": result.reports_per_second,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rules": options.rules,
        "speed": options.speed or "max",
        "workers": workers,
        "scheduler": options.scheduler,
        "memory": options.memory,
        "version": metadata.version("xstream"),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    return result
