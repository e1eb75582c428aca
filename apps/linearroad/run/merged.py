"""The figures of all shares of a run as those of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linearroad.generation.manifest import Entry
from linearroad.output.sink import RunResult, limits_of
from xstream.io.response_times import ResponseTimes

__all__ = ["Merged"]

MOST_SENTENCES = 20
SUMS = ("rows", "reports", "requests", "implausible_speeds", "unanswerable", "recoveries")
LISTS = ("warnings", "first_differences")


@dataclass
class Merged:
    """Adds up shares one at a time, so that its size does not depend on their number."""

    rules: str
    result: RunResult = field(default_factory=RunResult)
    groups: int = 0
    resumed: int = 0  # shares that went on from a checkpoint
    peak_memory_bytes: int = 0
    expressways: int = 0
    summary: Entry = field(default_factory=dict)  # of the first share
    _counts: Any = None
    _began: float = float("inf")
    _ended: float = 0.0
    _late: dict[str, Any] | None = None
    _worst: tuple[int, float] = (-1, 0.0)
    _worst_ms: list[int] = field(default_factory=list)
    _rejects: Counter[str] = field(default_factory=Counter)
    _rows_by_type: Counter[str] = field(default_factory=Counter)
    _stage_ns: Counter[str] = field(default_factory=Counter)
    _checkpoints: Counter[str] = field(default_factory=Counter)

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Add shares, and complete the figures."""
        for entry in entries:
            self._add(entry)
        self._complete()

    def _add(self, entry: Entry) -> None:
        summary, result = entry["summary"], self.result
        self.summary = self.summary or summary
        self.groups += 1
        self.expressways += entry["expressways"]
        for name in SUMS:
            setattr(result, name, getattr(result, name) + summary[name])
        for name, count in summary["answers"].items():
            result.answers[name] += count
        result.copies_differ += entry["copies_differ"]
        for name in LISTS:
            found, room = getattr(result, name), MOST_SENTENCES
            found += [each for each in summary[name] if each not in found][: room - len(found)]
        self._rejects.update(summary["rejects"])
        self._rows_by_type.update(summary["rows_by_type"])
        for stage, spent in summary["stage_ns"].items():
            self._stage_ns[stage] += spent * summary["reports"]
        result.interrupted |= summary["interrupted"]
        result.stream_seconds = max(result.stream_seconds, summary["stream_seconds"])
        result.worst_lag_s = max(result.worst_lag_s, summary["worst_lag_s"])
        self.peak_memory_bytes = max(self.peak_memory_bytes, summary["peak_memory_bytes"])
        self._add_times(entry)
        taken = summary["checkpoints"] or {}
        self.resumed += taken.get("resumed_from") is not None
        for name in ("count", "bytes", "pause_s"):
            self._checkpoints[name] += taken.get(name, 0)

    def _add_times(self, entry: Entry) -> None:
        self._began, self._ended = (
            min(self._began, entry["began"]),
            max(self._ended, entry["ended"]),
        )
        delays, (place, counts) = entry["delays"], entry["delay_counts"]
        if self._counts is None:
            self._counts = ResponseTimes(limits_of(self.rules)).save_state()["counts"]
            self._worst_ms = [0] * len(delays["worst_ms"])
        np.add.at(self._counts.reshape(-1), np.array(place, np.int64), np.array(counts, np.int64))
        pairs = zip(self._worst_ms, delays["worst_ms"], strict=True)
        self._worst_ms = [max(pair) for pair in pairs]
        self._worst = max(self._worst, tuple(delays["worst"]), key=lambda worst: worst[1])
        late = delays["first_late"]
        if late and (self._late is None or late["second"] < self._late["second"]):
            self._late = late

    def _complete(self) -> None:
        result, times = self.result, ResponseTimes(limits_of(self.rules))
        times.load_state(
            {
                "counts": self._counts, "worst_ms": self._worst_ms, "worst": self._worst,
                "first_late": self._late,
            }
        )  # fmt: skip
        result.response_s = times.by_kind() if self.summary["speed"] != "max" else {}
        result.first_late = None if times.first_late is None else times.first_late.sentence()
        result.wall_seconds = self._ended - self._began
        result.rejects = dict(sorted(self._rejects.items()))
        result.stage_ns = {
            stage: round(spent / max(result.reports, 1), 2)
            for stage, spent in self._stage_ns.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """For `summary.json`: that of a run, and what is known of the shares."""
        result = self.result
        figures = {
            name: getattr(result, name)
            for name in result.__dataclass_fields__
            if name not in ("digests", "idle_s")
        }
        return {
            **self.summary, **figures,
            "rows_by_type": dict(self._rows_by_type),
            "reports_per_second": result.reports_per_second,
            "peak_memory_bytes": self.peak_memory_bytes,
            "expressways": self.expressways,
            "groups": self.groups,
            "groups_resumed": self.resumed,
            "checkpoints": dict(self._checkpoints),
        }  # fmt: skip

    def add_comparison(self, found: Sequence[tuple[int, list[str]]]) -> None:
        """Add what the comparison of shares with the originals has found."""
        result = self.result
        result.copies_differ = sum(wrong for wrong, _ in found)
        told = [sentence for _, sentences in found for sentence in sentences]
        result.first_differences = told[:MOST_SENTENCES]
