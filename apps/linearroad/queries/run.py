"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import xstream as xs
from linearroad.queries.feeding import Clock, RowFeed
from linearroad.queries.history import History
from linearroad.queries.network import RAW, RULES, Network, build, settle
from linearroad.queries.operators.answers import answers
from linearroad.queries.reading import open_input
from linearroad.queries.sharding import HANDED_OVER, Worker, together
from linearroad.queries.writing import AnswerWriter, RejectWriter, answer_writer

__all__ = ["RunOptions", "RunResult", "plan", "run"]

BATCH = 1 << 16  # answers that are written at once
BURST = 4  # tuples that are let in before all are worked off
LIMITS_S = {0: 5, 1: 5, 2: 5, 3: 10, 4: 30}
TYPES = ("toll notifications", "accident alerts", "balances", "expenditures", "travel times")


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


@dataclass
class RunResult:
    """What `summary.json` says."""

    rows: int = 0
    reports: int = 0
    requests: int = 0
    implausible_speeds: int = 0
    unanswerable: int = 0
    answers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TYPES, 0))
    rejects: dict[str, int] = field(default_factory=dict)
    wall_seconds: float = 0.0
    stream_seconds: int = 0
    interrupted: bool = False
    response_s: dict[str, dict[str, float]] = field(default_factory=dict)
    worst_lag_s: float = 0.0

    @property
    def reports_per_second(self) -> float:
        """Position reports by wall-clock second."""
        return self.reports / self.wall_seconds if self.wall_seconds else 0.0


class _Answers:
    """Takes the answers to the writer and keeps the figures of the run."""

    def __init__(self, writer: AnswerWriter, clock: Clock) -> None:
        self.writer, self.clock = writer, clock
        self.result = RunResult()
        self._delays: dict[int, list[np.ndarray[Any, Any]]] = {kind: [] for kind in range(5)}

    def take(self, *columns: xs.SigSeg) -> None:
        """A batch of answers."""
        kind, times, emit, who, value, amount = (np.asarray(column) for column in columns)
        self.writer.write(kind, times, emit, who, value, amount)
        counts = np.bincount(kind, minlength=5)
        for name, count in zip(TYPES, counts, strict=True):
            self.result.answers[name] += int(count)
        self.result.unanswerable += int(((kind == 4) & (value == -1)).sum())
        self.result.stream_seconds = int(times[-1])
        if self.clock.speed is not None:
            delay = emit - 1000 * times.astype(np.int64)
            for number in range(5):
                self._delays[number].append(delay[kind == number])

    def close(self) -> RunResult:
        """Everything on disk, and the figures complete."""
        self.writer.close()
        for number, parts in self._delays.items():
            delays = np.concatenate(parts) if parts else np.empty(0)
            if len(delays):
                p50, p99 = np.percentile(delays, [50, 99]) / 1000
                late = int((delays > 1000 * LIMITS_S[number]).sum())
                self.result.response_s[TYPES[number]] = {
                    "p50": float(p50), "p99": float(p99), "worst": float(delays.max()) / 1000,
                    "limit": LIMITS_S[number], "late": late,
                }  # fmt: skip
        return self.result


def plan(rules: str = "paper") -> xs.Query:
    """The query network, for `to_dot`."""
    _check_rules(rules)
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable([], out=RAW), name="rows")
    network = build(rows, History(), rules)
    _join_answers(network, lambda second: second).count(name="sink")
    for stream in network.rejects:
        stream.count()
    return query


def _check_rules(rules: str) -> None:
    if rules not in RULES:
        raise xs.InputError(f"rules are {', '.join(RULES)}, not {rules!r}")


def _join_answers(network: Network, emit_ms: Callable[[int], int]) -> xs.Stream:
    """All answers of a second in one table."""
    notified = network.notifications.select(
        "time", "toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg", name="answers to reports"
    )
    balances = network.balances.select("qid", "balance", name="balances")
    spent = network.expenditures.select("qid", "balance", name="expenditures")
    travels = network.travel_times.select("qid", "seconds", "toll", name="travel times")
    left = network.balances.select("time").map(emit_ms, out=int, name="emit")
    second = notified.zip(balances, spent, travels, left, name="answers of a second")
    return second.iterate(answers, name="answers")


def _end_in_output(network: Network, taker: _Answers) -> None:
    """Answers of many seconds at once to the writer."""
    columns = _join_answers(network, taker.clock.emit_ms)
    names = [field.name for field in columns.schema]
    batches = [columns.select(name).rewindow(BATCH, flush=True) for name in names]
    batches[0].zip(*batches[1:], name="batch").sink(taker.take, name="output")


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
    taker = _Answers(answer_writer(out, options.form), clock)
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
    _end_in_output(network, taker)
    try:
        _execute(query, feeds, shards, taker, options, progress)
    finally:
        rejects.close()
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
    query: xs.Query, feeds: list[RowFeed], shards: list[Worker], taker: _Answers,
    options: RunOptions, progress: Callable[[RunResult], None] | None,
) -> None:  # fmt: skip
    result = taker.result

    def look(_: xs.Run) -> None:
        result.rows = sum(feed.rows for feed in feeds)
        result.worst_lag_s = max(feed.worst_lag_s for feed in feeds)
        if progress is not None:
            progress(result)

    taker.clock.start()
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
        result.wall_seconds = time.perf_counter() - began
        taker.close()
    if shards:
        result.reports = sum(shard.reports for shard in shards)
    else:  # second reports are rejected before
        result.reports = done.stats["segment statistics"].samples
    result.rows = sum(feed.rows for feed in feeds)
    result.implausible_speeds = sum(feed.implausible for feed in feeds)
    result.requests = sum(list(result.answers.values())[2:])


def _summarise(
    taker: _Answers, rejects: RejectWriter, options: RunOptions, workers: int, out: Path
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
