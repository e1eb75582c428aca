"""Delays of answers in stream time, as histograms in milliseconds."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LIMITS_S", "TYPES", "Delays", "Late"]

#: Kinds of answers, and how long each may take (docs/linear-road-rules.md, section 4.4).
TYPES = ("toll notifications", "accident alerts", "balances", "expenditures", "travel times")
LIMITS_S = (5, 5, 5, 10, 30)

_LONGEST_MS = 60_000  # of the histogram; anything longer is late in any case
_SHARES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


@dataclass(frozen=True)
class Late:
    """An answer that came after its limit: the second of its row, its kind, how long it took."""

    second: int
    kind: int
    delay_s: float

    def sentence(self) -> str:
        """A sentence; delays are in milliseconds, so three digits show what is late."""
        return (
            f"second {self.second:,}: {TYPES[self.kind]} took {self.delay_s:.3f} stream seconds, "
            f"and {LIMITS_S[self.kind]} are allowed"
        )


class Delays:
    """Delays of all answers of a run; any thread may add to them."""

    def __init__(self) -> None:
        self._counts = np.zeros((len(TYPES), _LONGEST_MS + 1), np.int64)
        self._worst_ms = [0] * len(TYPES)
        self._lock = threading.Lock()
        #: The first second whose answers were late.
        self.first_late: Late | None = None
        #: The second whose answers took longest, and how long.
        self.worst: tuple[int, float] = (-1, 0.0)

    def note(self, kind: int, seconds: NDArray[np.int64], delays_ms: NDArray[np.int64]) -> None:
        """Count answers of a kind: the seconds of their rows, and their delays."""
        if not len(delays_ms):
            return
        with self._lock:
            np.add.at(self._counts[kind], np.clip(delays_ms, 0, _LONGEST_MS), 1)
        slowest = int(delays_ms.argmax())
        self._note_extremes(kind, int(seconds[slowest]), int(delays_ms[slowest]))
        late = delays_ms > 1000 * LIMITS_S[kind]
        if late.any():
            first = int(np.flatnonzero(late)[0])
            self._note_extremes(kind, int(seconds[first]), int(delays_ms[first]))

    def note_many(self, kind: int, second: int, delay_ms: int, count: int) -> None:
        """Count answers of a kind and second with equal delays."""
        if count:
            with self._lock:
                self._counts[kind, min(max(delay_ms, 0), _LONGEST_MS)] += count
            self._note_extremes(kind, second, delay_ms)

    def _note_extremes(self, kind: int, second: int, delay_ms: int) -> None:
        with self._lock:
            self._worst_ms[kind] = max(self._worst_ms[kind], delay_ms)
            if delay_ms > 1000 * self.worst[1]:
                self.worst = second, delay_ms / 1000
            before = self.first_late
            if delay_ms > 1000 * LIMITS_S[kind] and (before is None or second < before.second):
                self.first_late = Late(second, kind, delay_ms / 1000)

    def by_type(self) -> dict[str, dict[str, float]]:
        """By type of answer: percentiles, the worst delay, the limit, the number of late answers,
        and the share within one second."""
        found = {}
        for kind, name in enumerate(TYPES):
            upto = np.cumsum(self._counts[kind])
            total = int(upto[-1])
            if not total:
                continue
            shares = {
                key: min(int(np.searchsorted(upto, share * total)), self._worst_ms[kind]) / 1000
                for key, share in _SHARES.items()
            }
            found[name] = {
                **shares, "worst": self._worst_ms[kind] / 1000, "limit": LIMITS_S[kind],
                "late": total - int(upto[1000 * LIMITS_S[kind]]),
                "within_1_s": int(upto[1000]) / total,
            }  # fmt: skip
        return found
