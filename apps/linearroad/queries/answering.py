"""From the query's answers to a file, and what a run has to say of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.queries.copying import Copy
from linearroad.queries.feeding import Clock
from linearroad.queries.network import Network
from linearroad.queries.operators.answers import answers, as_scheduled
from linearroad.queries.operators.digests import unshifted
from linearroad.queries.writing import AnswerWriter

__all__ = ["TYPES", "AnswerSink", "RunResult", "join_answers"]

BATCH = 1 << 17  # answers that are written at once, at full speed
LIMITS_S = {0: 5, 1: 5, 2: 5, 3: 10, 4: 30}
TYPES = ("toll notifications", "accident alerts", "balances", "expenditures", "travel times")


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
    #: For each part (a file's original or copy), a digest of each kind of its answers.
    digests: list[list[str]] = field(default_factory=list)
    lag_s: float = 0.0
    worst_lag_s: float = 0.0

    @property
    def reports_per_second(self) -> float:
        """Position reports by wall-clock second."""
        return self.reports / self.wall_seconds if self.wall_seconds else 0.0


class Delays:
    """How long answers took, in stream milliseconds: as many of each delay and kind."""

    def __init__(self) -> None:
        self._noted: dict[int, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {
            kind: [] for kind in range(len(TYPES))
        }

    def note(self, kind: int, delays_ms: NDArray[np.int64]) -> None:
        """Some answers of a kind."""
        if len(delays_ms):
            self._noted[kind].append(np.unique_counts(delays_ms))

    def note_many(self, kind: int, delay_ms: int, count: int) -> None:
        """Answers of a kind that took equally long."""
        if count:
            self._noted[kind].append((np.array([delay_ms]), np.array([count])))

    def by_type(self) -> dict[str, dict[str, float]]:
        """Percentiles, the worst, the limit and how many were later, of each type that came."""
        found = {}
        for kind, parts in self._noted.items():
            if not parts:
                continue
            delays, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.argsort(delays)
            delays, upto = delays[order], np.cumsum(counts[order])
            p50, p99 = (
                float(delays[np.searchsorted(upto, share * upto[-1])]) / 1000
                for share in (0.5, 0.99)
            )
            within = np.searchsorted(delays, 1000 * LIMITS_S[kind], side="right")
            found[TYPES[kind]] = {
                "p50": p50, "p99": p99, "worst": float(delays[-1]) / 1000,
                "limit": LIMITS_S[kind],
                "late": int(upto[-1] - (upto[within - 1] if within else 0)),
            }  # fmt: skip
        return found


class AnswerSink:
    """Takes the answers to the writer and keeps the figures of the run."""

    def __init__(self, writer: AnswerWriter, clock: Clock) -> None:
        self.writer, self.clock = writer, clock
        self.result = RunResult()
        self.delays = Delays()

    def end(self, columns: xs.Stream) -> None:
        """Answers to the writer: every second's when it is paced, many seconds' at full speed."""
        if self.clock.speed is not None:
            columns.sink(self.take, name="output")
            return
        names = [field.name for field in columns.schema]
        batches = [columns.select(name).rewindow(BATCH, flush=True) for name in names]
        batches[0].zip(*batches[1:], name="batch").sink(self.take, name="output")

    def take(self, *columns: xs.SigSeg) -> None:
        """A batch of answers."""
        kind, times, emit, who, value, amount = (np.asarray(column) for column in columns)
        if not len(kind):
            return
        self.writer.write(kind, times, emit, who, value, amount)
        counts = np.bincount(kind, minlength=5)
        for name, count in zip(TYPES, counts, strict=True):
            self.result.answers[name] += int(count)
        if counts[4]:
            self.result.unanswerable += int((value[kind == 4] == -1).sum())
        self.result.stream_seconds = int(times[-1])
        if self.clock.speed is not None:
            delay = emit - 1000 * times.astype(np.int64)
            for number in range(len(TYPES)):
                self.delays.note(number, delay[kind == number])

    def take_digests(self, sums: NDArray[np.int64], parts: list[Copy]) -> None:
        """The digests of all parts (one a row), and whose copy each of them is."""
        for own, copy in zip(sums, parts, strict=True):
            kinds = unshifted(own, copy.vid_by, copy.qid_by)
            for name, kind in zip(TYPES, kinds, strict=True):
                self.result.answers[name] += kind[0]
            self.result.digests.append(["-".join(f"{n:x}" for n in kind) for kind in kinds])

    def close(self) -> None:
        """Everything on disk, and the figures complete."""
        self.writer.close()
        self.result.response_s = self.delays.by_type()


def join_answers(network: Network, clock: Clock) -> xs.Stream:
    """All answers of a second in one table, with the time when they leave the engine."""
    notified = network.notifications.select(
        "time", "toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg", name="answers to reports"
    )
    balances = network.balances.select("qid", "balance", name="balances")
    spent = network.expenditures.select("qid", "balance", name="expenditures")
    travels = network.travel_times.select("qid", "seconds", "toll", name="travel times")
    time = network.balances.select("time")
    if clock.speed is None:
        left = time.map(as_scheduled, name="emit")
    else:
        left = time.map(clock.emit_ms, out=int, name="emit")
    second = notified.zip(balances, spent, travels, left, name="answers of a second")
    return second.iterate(answers, name="answers")
