"""Response times by kind of result, in stream time, as histograms in milliseconds."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Late", "ResponseTimes"]

_LONGEST_S = 60  # of the histogram, or the longest limit; anything longer is late in any case
_SHARES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


@dataclass(frozen=True)
class Late:
    """A result that came after its limit: the second of its input, its kind, how long it took."""

    second: int
    kind: str
    delay_s: float
    limit_s: int

    def sentence(self) -> str:
        """A sentence; delays are in milliseconds, so three digits show what is late."""
        return (
            f"second {self.second:,}: {self.kind} took {self.delay_s:.3f} stream seconds, "
            f"and {self.limit_s} are allowed"
        )


class ResponseTimes:
    """Response times of all results of a run; any thread may add to them.

    `limits_s` has the kinds of results by name, and how long each may take.

    >>> times = ResponseTimes({"alerts": 5, "balances": 10})
    >>> times.note_many(kind=0, second=60, delay_ms=5001, count=3)
    >>> times.first_late.sentence()
    'second 60: alerts took 5.001 stream seconds, and 5 are allowed'
    >>> times.by_kind()["alerts"]["late"]
    3
    """

    def __init__(self, limits_s: Mapping[str, int]) -> None:
        self._kinds, self._limits_s = tuple(limits_s), tuple(limits_s.values())
        self._longest_ms = 1000 * max(_LONGEST_S, *self._limits_s)
        self._counts = np.zeros((len(limits_s), self._longest_ms + 1), np.int64)
        self._worst_ms = [0] * len(limits_s)
        self._lock = threading.Lock()
        #: The first second whose results were late.
        self.first_late: Late | None = None
        #: The second whose results took longest, and how long.
        self.worst: tuple[int, float] = (-1, 0.0)

    def save_state(self) -> dict[str, Any]:
        """What another run goes on from."""
        late = self.first_late
        return {
            "counts": self._counts.copy(), "worst_ms": list(self._worst_ms),
            "worst": list(self.worst), "first_late": None if late is None else asdict(late),
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._counts[:] = saved["counts"]
        self._worst_ms = [int(worst) for worst in saved["worst_ms"]]
        second, delay_s = saved["worst"]
        self.worst = int(second), float(delay_s)
        self.first_late = None if saved["first_late"] is None else Late(**saved["first_late"])

    def note(self, kind: int, seconds: NDArray[np.int64], delays_ms: NDArray[np.int64]) -> None:
        """Count results of a kind: the seconds of their inputs, and their delays."""
        if not len(delays_ms):
            return
        with self._lock:
            np.add.at(self._counts[kind], np.clip(delays_ms, 0, self._longest_ms), 1)
        slowest = int(delays_ms.argmax())
        self._note_extremes(kind, int(seconds[slowest]), int(delays_ms[slowest]))
        late = delays_ms > 1000 * self._limits_s[kind]
        if late.any():
            first = int(np.flatnonzero(late)[0])
            self._note_extremes(kind, int(seconds[first]), int(delays_ms[first]))

    def note_many(self, kind: int, second: int, delay_ms: int, count: int) -> None:
        """Count results of a kind and second with equal delays."""
        if count:
            with self._lock:
                self._counts[kind, min(max(delay_ms, 0), self._longest_ms)] += count
            self._note_extremes(kind, second, delay_ms)

    def _note_extremes(self, kind: int, second: int, delay_ms: int) -> None:
        with self._lock:
            self._worst_ms[kind] = max(self._worst_ms[kind], delay_ms)
            if delay_ms > 1000 * self.worst[1]:
                self.worst = second, delay_ms / 1000
            before, limit_s = self.first_late, self._limits_s[kind]
            if delay_ms > 1000 * limit_s and (before is None or second < before.second):
                self.first_late = Late(second, self._kinds[kind], delay_ms / 1000, limit_s)

    def by_kind(self) -> dict[str, dict[str, float]]:
        """By kind of result: percentiles, the worst delay, the limit, the number of late results,
        and the share within one second."""
        found = {}
        for kind, (name, limit_s) in enumerate(zip(self._kinds, self._limits_s, strict=True)):
            upto = np.cumsum(self._counts[kind])
            total = int(upto[-1])
            if not total:
                continue
            shares = {
                key: min(int(np.searchsorted(upto, share * total)), self._worst_ms[kind]) / 1000
                for key, share in _SHARES.items()
            }
            found[name] = {
                **shares, "worst": self._worst_ms[kind] / 1000, "limit": limit_s,
                "late": total - int(upto[1000 * limit_s]),
                "within_1_s": int(upto[1000]) / total,
            }  # fmt: skip
        return found
