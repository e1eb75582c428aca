"""When the rows were due that answers without times belong to: by vehicle, and by request."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from linearroad.driver._kernels import enter_times, find_times, moved_times
from linearroad.schema import ALERT, QID, REPORTS, TIME, TOLL, TYPE, VID
from linearroad.tables.batches import PERIOD
from linearroad.wire.format import Block
from xstream.kernels.hashtable import EMPTY

__all__ = ["DueTimes"]

ENTRY = np.dtype([("key", "i8"), ("time", "i8")])


def _empty(size: int) -> NDArray[np.void]:
    return np.full(size, np.array((EMPTY, -1), ENTRY))


class DueTimes:
    """The latest report of each vehicle and the second of each request that has been sent.

    A notification is measured against the latest report that had been sent when it arrived, so its
    response time is a lower bound; a validator knows which report it belongs to. An alert is due
    when an accident is detected, which is less than 30 s after the latest report of its vehicle and
    at the latest in the last second that was sent: its response time is a lower bound as well.
    """

    def __init__(self) -> None:
        self._tables = [_empty(1 << 12), _empty(1 << 12)]
        self._used = [0, 0]
        self._latest = -1
        self._lock = threading.Lock()  # rows are sent and answers received by two threads

    def note(self, rows: Block) -> None:
        """Note rows that are about to be sent."""
        is_report = rows[TYPE] == REPORTS
        with self._lock:
            self._latest = max(self._latest, int(rows[TIME].max(initial=-1)))
            for place, (mine, column) in enumerate(((is_report, VID), (~is_report, QID))):
                self._note(place, rows[column, mine], rows[TIME, mine])

    def _note(self, place: int, keys: NDArray[np.int32], times: NDArray[np.int32]) -> None:
        needed = 3 * (self._used[place] + len(keys)) // 2
        if needed >= len(self._tables[place]):
            larger = _empty(2 * needed)
            moved_times(self._tables[place], larger)
            self._tables[place] = larger
        self._used[place] += enter_times(self._tables[place], keys, times)

    def seconds(self, kind: NDArray[np.int8], who: NDArray[np.int32]) -> NDArray[np.int32]:
        """The second in which each answer was due; -1 if it belongs to no row."""
        vehicles = (kind == TOLL) | (kind == ALERT)
        found = np.empty(len(kind), np.int32)
        with self._lock:
            for table, mine in zip(self._tables, (vehicles, ~vehicles), strict=True):
                found[mine] = find_times(table, who[mine])
            latest = self._latest
        alerts = (kind == ALERT) & (found >= 0)
        found[alerts] = np.minimum(found[alerts] + np.int64(PERIOD - 1), latest)
        return found
