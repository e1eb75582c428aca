"""Passes the answers of the query to a writer, and collects the figures of the run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.output.digests import Digests
from linearroad.schema import KINDS, TRAVEL_TIME
from xstream.console.timeline import process_age_s
from xstream.io.background import ColumnWriter
from xstream.io.response_times import ResponseTimes
from xstream.io.schedule import Schedule

__all__ = ["LIMITS_S", "TYPES", "AnswerSink", "RunResult", "limits_of"]

#: Kinds of answers, and how long each may take (docs/linear-road-rules.md, section 4.4).
LIMITS_S = {
    "toll notifications": 5, "accident alerts": 5, "balances": 5, "expenditures": 10,
    "travel times": 30,
}  # fmt: skip
TYPES = tuple(LIMITS_S)
#: The same by the rules of the thesis (docs/linear-road-thesis.md).
THESIS_LIMITS_S = dict(zip(TYPES, (15, 15, 60, 90, 120), strict=True))

BATCH = 1 << 17  # answers per write at full speed


def limits_of(rules: str) -> dict[str, int]:
    """How long each kind of answer may take, by a rule set."""
    return THESIS_LIMITS_S if rules == "thesis" else LIMITS_S


@dataclass
class RunResult:
    """The figures of a run, for `summary.json`."""

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
    #: Sentences about the input that cast doubt on the answers.
    warnings: list[str] = field(default_factory=list)
    response_s: dict[str, dict[str, float]] = field(default_factory=dict)
    #: By expressway, minute and kind of answer, without the shift of copies; None if not digested.
    digests: Digests | None = None
    #: The number of digests of copies that differ from their originals, and the first differences.
    copies_differ: int = 0
    first_differences: list[str] = field(default_factory=list)
    #: Nanoseconds of CPU time per report, by stage.
    stage_ns: dict[str, float] = field(default_factory=dict)
    #: A sentence about the first second whose answers were late.
    first_late: str | None = None
    #: A sentence about the answers that took longest, and what happened meanwhile.
    longest: str | None = None
    lag_s: float = 0.0
    worst_lag_s: float = 0.0
    #: How often it went on after an interruption, and how long the last time took to an answer.
    recoveries: int = 0
    recovery_s: float | None = None
    #: What the checkpoints of the run, or of its last part, cost.
    checkpoints: dict[str, Any] | None = None
    #: Seconds until the next rows are due, while it runs.
    idle_s: float = 0.0

    def interruption(self) -> str:
        """What an interrupted run has written, as a sentence."""
        if self.digests is not None:
            return (
                f"the run had reached about stream second {self.stream_seconds:,}, and the digests "
                "of some expressways end earlier"
            )
        if not sum(self.answers.values()) or self.stream_seconds < 0:
            return "no stream second was answered completely"
        return f"answers are complete up to stream second {self.stream_seconds:,}"

    @property
    def reports_per_second(self) -> float:
        """Position reports per wall-clock second."""
        return self.reports / self.wall_seconds if self.wall_seconds else 0.0


def _said(name: str, value: Any) -> str:
    """An option that a run was given, or not."""
    return f"without {name}" if value is None else f"with {name} {value}"


class AnswerSink:
    """Passes answers to the writer and updates the figures of the run.

    Answers that are digested need no writer.
    """

    def __init__(
        self, writer: ColumnWriter | None, schedule: Schedule, rules: str = "paper"
    ) -> None:
        self.writer, self.schedule = writer, schedule
        self.result = RunResult()
        self.delays = ResponseTimes(limits_of(rules))
        self._counting = threading.Lock()
        #: The options that a run must have in common with the one whose checkpoint it goes on from.
        self.options: dict[str, Any] = {}
        #: Everything else that a checkpoint holds beside the query, by name.
        self.parts: dict[str, xs.Recoverable] = {"schedule": schedule}
        self._recovering = False

    @property
    def at_least(self) -> int:
        """Rows to collect before they are written: those of one second if paced, else many."""
        return 1 if self.schedule.is_paced else BATCH

    def take(self, upto: int, *columns: xs.SigSeg) -> None:
        """Take a batch: all answers up to a second that were not in the last batch."""
        self._note_recovery()
        kind, times, who, value, amount = (np.asarray(column) for column in columns)
        emit = np.full(len(kind), self.schedule.emit_ms(upto), np.int64)
        if not self.schedule.is_paced:
            np.multiply(times, 1000, out=emit)
        emit.flags.writeable = False  # like the other columns, for which the writer is compiled
        assert self.writer is not None
        self.writer.write(kind, times, emit, who, value, amount)
        counts = np.bincount(kind, minlength=KINDS)
        for name, count in zip(TYPES, counts, strict=True):
            self.result.answers[name] += int(count)
        if counts[TRAVEL_TIME]:
            self.result.unanswerable += int((value[kind == TRAVEL_TIME] == -1).sum())
        self.result.stream_seconds = upto
        if self.schedule.is_paced:
            seconds = times.astype(np.int64)
            for number in range(KINDS):
                here = kind == number
                self.delays.note(number, seconds[here], (emit - 1000 * seconds)[here])

    def take_counts(self, second: int, counted: xs.SigSeg) -> None:
        """Count digested answers of each kind up to a second; thread-safe."""
        counts: NDArray[np.int64] = np.asarray(counted)
        self._note_recovery()
        delay_ms = self.schedule.emit_ms(second) - 1000 * second
        with self._counting:
            self.result.stream_seconds = max(self.result.stream_seconds, second)
            for name, count in zip(TYPES, counts.tolist(), strict=True):
                self.result.answers[name] += count
        if self.schedule.is_paced:
            for kind, count in enumerate(counts.tolist()):
                self.delays.note_many(kind, second, delay_ms, count)

    # -- checkpoints -------------------------------------------------------------------------

    def save_state(self) -> dict[str, Any]:
        """The figures so far, the lengths of the outputs, the time."""
        delays = self.delays.save_state()
        return {
            "options": self.options, "answers": dict(self.result.answers),
            "unanswerable": self.result.unanswerable, "recoveries": self.result.recoveries,
            "stream_seconds": self.result.stream_seconds,
            "delays": {name: value for name, value in delays.items() if name != "counts"},
            "delay_counts": delays["counts"],
            "parts": {name: part.save_state() for name, part in self.parts.items()},
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from there; raises an InputError if the run has other options."""
        for name, value in self.options.items():
            before = saved["options"].get(name)
            if before != value:
                raise xs.InputError(
                    f"it is of a run {_said(name, before)}, and this is one {_said(name, value)}"
                )
        result = self.result
        result.answers.update(saved["answers"])
        result.unanswerable, result.stream_seconds = saved["unanswerable"], saved["stream_seconds"]
        result.recoveries = saved["recoveries"] + 1
        self.delays.load_state({**saved["delays"], "counts": saved["delay_counts"]})
        for name, part in self.parts.items():
            part.load_state(saved["parts"][name])
        self._recovering = True

    def _note_recovery(self) -> None:
        """Note how long it took from the start of the process to the first new answers."""
        if self._recovering:
            self._recovering = False
            self.result.recovery_s = process_age_s()

    def close(self) -> None:
        """Close the writer and complete the figures."""
        if self.writer is not None:
            self.writer.close()
        self.result.response_s = self.delays.by_kind()
