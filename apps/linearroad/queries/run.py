"""`xstream linearroad run`: rows in, answers out, at full speed or paced by the clock."""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import xstream as xs
from linearroad.queries.history import History
from linearroad.queries.layout import REASONS
from linearroad.queries.network import RAW, RULES, Network, build
from linearroad.queries.operators.answers import answers
from linearroad.queries.reading import (
    FILE_SHIFT,
    Chunk,
    Reject,
    RowReader,
    merged,
    open_input,
    seconds,
)  # fmt: skip
from linearroad.queries.writing import AnswerWriter, RejectWriter, answer_writer

__all__ = ["RunOptions", "RunResult", "plan", "run"]

BATCH = 1 << 16  # answers that are written at once
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
    tuple_burst: int | None = 4


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


class _Driver:
    """One run: feeds the query, takes its answers and rejects, keeps the figures."""

    def __init__(self, readers: list[RowReader], options: RunOptions, out: Path) -> None:
        self.readers, self.options = readers, options
        self.result = RunResult()
        self.writer: AnswerWriter = answer_writer(out, options.form)
        self.rejects = RejectWriter(out / "rejects.csv", len(readers) > 1)
        self.began = 0.0
        self._delays: dict[int, list[np.ndarray[Any, Any]]] = {kind: [] for kind in range(5)}

    # -- in ----------------------------------------------------------------------------------

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Raw rows as the query takes them."""
        limit = None if self.options.minutes is None else 60 * self.options.minutes
        rows = merged(self.readers)
        chunks = ((chunk, False) for chunk in rows)
        for chunk, whole in self._paced(rows) if self.options.speed is not None else chunks:
            if limit is not None and len(late := np.flatnonzero(chunk.columns[1] >= limit)):
                yield self._tuple(chunk.part(0, int(late[0])), True)
                return
            yield self._tuple(chunk, whole)
        yield self._tuple(Chunk(np.empty((15, 0), np.int32), np.empty(0, np.int64)), True)

    def _tuple(self, chunk: Chunk, whole: bool) -> tuple[Any, ...]:
        for reader in self.readers:
            for reject in reader.unparsed:
                self.rejects.write(reject, reader.name)
        self.result.rows += len(chunk)
        return (*(xs.SigSeg(column) for column in chunk.columns), xs.SigSeg(chunk.origins), whole)

    def _paced(self, rows: Iterator[Chunk]) -> Iterator[tuple[Chunk, bool]]:
        """Each second's rows at their time; falling behind is measured, never hidden."""
        waiting: list[Chunk] = []
        for chunk in seconds(rows):
            if waiting and chunk.columns[1, 0] != waiting[0].columns[1, 0]:
                yield from self._release(waiting)
                waiting = []
            waiting.append(chunk)
        yield from self._release(waiting)

    def _release(self, waiting: list[Chunk]) -> Iterator[tuple[Chunk, bool]]:
        if not waiting:
            return
        assert self.options.speed is not None
        due = self.began + int(waiting[0].columns[1, 0]) / self.options.speed
        late = time.perf_counter() - due
        if late < 0:
            time.sleep(-late)
        self.result.worst_lag_s = max(self.result.worst_lag_s, late * self.options.speed)
        for i, chunk in enumerate(waiting):
            yield chunk, i == len(waiting) - 1

    # -- out ---------------------------------------------------------------------------------

    def emit_ms(self, second: int) -> int:
        """When the answers of a second leave the engine, in stream milliseconds."""
        if self.options.speed is None:
            return 1000 * second
        return int(1000 * (time.perf_counter() - self.began) * self.options.speed)

    def take_answers(self, *columns: xs.SigSeg) -> None:
        """A batch of answers for the writer."""
        kind, times, emit, who, value, amount = (np.asarray(column) for column in columns)
        self.writer.write(kind, times, emit, who, value, amount)
        counts = np.bincount(kind, minlength=5)
        for name, count in zip(TYPES, counts, strict=True):
            self.result.answers[name] += int(count)
        self.result.unanswerable += int(((kind == 4) & (value == -1)).sum())
        self.result.stream_seconds = int(times[-1])
        if self.options.speed is not None:
            delay = emit - 1000 * times.astype(np.int64)
            for number in range(5):
                self._delays[number].append(delay[kind == number])

    def take_rejects(self, rejects: xs.SigSeg) -> None:
        """Rows that the query refused."""
        for origin, reason in np.asarray(rejects).reshape(-1, 2).tolist():
            number, line = origin >> FILE_SHIFT, origin & ((1 << FILE_SHIFT) - 1)
            reader = self.readers[number]
            self.rejects.write(Reject(line, REASONS[reason], reader.row(line)), reader.name)

    def close(self) -> RunResult:
        """Everything on disk, and the figures complete."""
        self.writer.close()
        self.rejects.close()
        self.result.rejects = dict(sorted(self.rejects.by_reason.items()))
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
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable([], out=RAW), name="rows")
    network = build(query, rows, History(), rules)
    _join_answers(network, lambda second: second).count(name="sink")
    for stream in network.rejects:
        stream.count()
    return query


def _join_answers(network: Network, emit_ms: Callable[[int], int]) -> xs.Stream:
    """All answers of a second in one table."""
    notified = network.notifications.select(
        "time", "toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg", name="notifications"
    )
    balances = network.balances.select("qid", "balance", name="balances")
    spent = network.expenditures.select("qid", "balance", name="expenditures")
    travels = network.travel_times.select("qid", "seconds", "toll", name="travel times")
    left = network.balances.select("time").map(emit_ms, out=int, name="emit")
    second = notified.zip(balances, spent, travels, left, name="answers of a second")
    return second.iterate(answers, name="answers")


def run(
    source: Path,
    out: Path,
    history: History,
    options: RunOptions,
    progress: Callable[[RunResult], None] | None = None,
) -> RunResult:
    """Run the query over an input and leave answers, rejects and a summary in `out`."""
    if options.rules not in RULES:
        raise xs.InputError(f"rules are {', '.join(RULES)}, not {options.rules!r}")
    readers = open_input(source)
    out.mkdir(parents=True, exist_ok=True)
    driver = _Driver(readers, options, out)
    query = xs.Query("linear road")
    rows = query.source(xs.io.iterable(driver.tuples, out=RAW), name="rows")
    network = build(query, rows, history, options.rules)
    columns = _join_answers(network, driver.emit_ms)
    _end_in_sinks(columns, network, driver)
    return _execute(query, driver, options, out, progress)


def _end_in_sinks(columns: xs.Stream, network: Network, driver: _Driver) -> None:
    names = [field.name for field in columns.schema]
    batches = [columns.select(name).rewindow(BATCH, flush=True) for name in names]
    batches[0].zip(*batches[1:], name="batch").sink(driver.take_answers, name="output")
    for stream in network.rejects:
        only = stream.select("reject")
        only.filter(_any).sink(driver.take_rejects)
    network.rejects[1].select("implausible").filter(_some).sink(
        lambda n: _add(driver.result, n), name="implausible speeds"
    )


@xs.kernel
def _any(column):  # type: ignore[no-untyped-def]
    return len(column) > 0


@xs.kernel
def _some(number):  # type: ignore[no-untyped-def]
    return number > 0


def _add(result: RunResult, implausible: int) -> None:
    result.implausible_speeds += implausible


def _execute(
    query: xs.Query, driver: _Driver, options: RunOptions, out: Path,
    progress: Callable[[RunResult], None] | None,
) -> RunResult:  # fmt: skip
    result = driver.result
    driver.began = time.perf_counter()
    try:
        done = query.run(
            options.scheduler, options.memory, options.tuple_burst,
            progress=(lambda _: progress(result)) if progress else False,
        )  # fmt: skip
    except xs.OperatorError as error:
        if isinstance(error.__cause__, xs.InputError):  # a file, not an operator, is to blame
            raise error.__cause__ from None
        raise
    finally:
        result.wall_seconds = time.perf_counter() - driver.began
        driver.close()
    result.interrupted = done.stopped
    stats = done.stats
    result.reports = stats["segment statistics"].samples  # second reports are rejected before
    result.requests = sum(list(result.answers.values())[2:])
    summary = {
        **{name: getattr(result, name) for name in result.__dataclass_fields__},
        "reports_per_second": result.reports_per_second,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rules": options.rules,
        "speed": options.speed or "max",
        "scheduler": options.scheduler,
        "memory": options.memory,
        "version": metadata.version("xstream"),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    return result
