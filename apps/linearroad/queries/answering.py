"""From the query's answers to a file, and what a run has to say of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.queries.comparing import Digests
from linearroad.queries.delays import TYPES, Delays
from linearroad.queries.feeding import Clock
from linearroad.queries.network import Network
from linearroad.queries.operators.answers import answers, as_scheduled
from linearroad.queries.writing import AnswerWriter

__all__ = ["AnswerSink", "RunResult", "join_answers"]

BATCH = 1 << 17  # answers that are written at once, at full speed


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
    interrupted_by_user: bool = False
    #: What is worth a look before the answers are trusted, in words.
    warnings: list[str] = field(default_factory=list)
    response_s: dict[str, dict[str, float]] = field(default_factory=dict)
    #: By expressway, minute and kind of answer, as the original's would be; None: not asked for.
    digests: Digests | None = None
    #: How many digests of copies are not those of their originals, and the first in words.
    copies_differ: int = 0
    first_differences: list[str] = field(default_factory=list)
    #: Nanoseconds of a core that a report takes, by stage.
    stage_ns: dict[str, float] = field(default_factory=dict)
    #: The first second whose answers were late, in words.
    first_late: str | None = None
    #: Which answers took longest, and what went on meanwhile, in words.
    longest: str | None = None
    lag_s: float = 0.0
    worst_lag_s: float = 0.0
    #: How long until the next rows come, while it runs.
    idle_s: float = 0.0

    def interruption(self) -> str:
        """What has been kept of a run that was interrupted, in words."""
        if self.digests is not None:
            return (
                f"about stream second {self.stream_seconds:,} had been reached, and the digests "
                "are those of some expressways up to an earlier one"
            )
        if not sum(self.answers.values()) or self.stream_seconds < 0:
            return "no stream second has been answered completely"
        return f"answers are complete up to stream second {self.stream_seconds:,}"

    @property
    def reports_per_second(self) -> float:
        """Position reports by wall-clock second."""
        return self.reports / self.wall_seconds if self.wall_seconds else 0.0


class AnswerSink:
    """Takes the answers to the writer and keeps the figures of the run."""

    def __init__(self, writer: AnswerWriter, clock: Clock) -> None:
        self.writer, self.clock = writer, clock
        self.result = RunResult()
        self.delays = Delays()
        self._telling = threading.Lock()
        self._whole_s = -1  # up to this second, all answers have been written

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
        # At full speed the rest of the last second is in the next batch.
        self._whole_s = int(times[-1]) - (self.clock.speed is None)
        if self.clock.speed is not None:
            seconds = times.astype(np.int64)
            for number in range(len(TYPES)):
                here = kind == number
                self.delays.note(number, seconds[here], (emit - 1000 * seconds)[here])

    def end_run(self, cut: bool) -> None:
        """No more answers come; `cut`: the engine was ended with answers on their way."""
        if cut:
            self.result.stream_seconds = self._whole_s

    def take_told(self, second: int, told: NDArray[np.int64]) -> None:
        """So many answers of each kind up to a second, which are not kept; from any thread."""
        delay_ms = self.clock.emit_ms(second) - 1000 * second
        with self._telling:
            self.result.stream_seconds = max(self.result.stream_seconds, second)
            for name, count in zip(TYPES, told.tolist(), strict=True):
                self.result.answers[name] += count
        if self.clock.speed is not None:
            for kind, count in enumerate(told.tolist()):
                self.delays.note_many(kind, second, delay_ms, count)

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
