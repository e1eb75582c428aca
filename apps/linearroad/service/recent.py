"""The answers that were sent last, for a driver that did not receive all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.operators.answers import BATCH

__all__ = ["RecentAnswers"]

#: More than the buffers between a service and a driver behind a proxy or tunnel usually hold.
KEPT_BYTES = 16 << 20

#: The columns of answers, in the order in which they are sent.
NAMES = tuple(name for name in BATCH if name != "upto")
Columns = tuple[NDArray[Any], ...]


class RecentAnswers:
    """The number of answers that were sent, and the last of them, `KEPT_BYTES` on the wire.

    The operating system tells when another computer has confirmed what was sent. If that is a proxy
    or the end of a tunnel, a cut can still lose it. Then it is sent again from here.
    """

    def __init__(self, keeps: bool, most_bytes: int = KEPT_BYTES) -> None:
        self.sent = 0
        self._most = most_bytes if keeps else 0
        self._kept = deque[tuple[Columns, int]]()  # answers, and their bytes on the wire
        self._bytes = 0

    def add(self, columns: Columns, wire_bytes: int) -> None:
        """Count answers that were sent, and keep them."""
        self.sent += len(columns[0])
        if not self._most:
            return
        self._kept.append((tuple(column.copy() for column in columns), wire_bytes))
        self._bytes += wire_bytes
        while self._bytes - self._kept[0][1] >= self._most:
            self._bytes -= self._kept.popleft()[1]

    @property
    def first(self) -> int:
        """The number of answers before those that are kept."""
        return self.sent - sum(len(columns[0]) for columns, _ in self._kept)

    def behind(self, number: int) -> Iterator[Columns]:
        """The answers behind the first `number`, which is at least `first`."""
        at = self.first
        for columns, _ in self._kept:
            begin, at = max(number - at, 0), at + len(columns[0])
            if begin < len(columns[0]):
                yield tuple(column[begin:] for column in columns)

    def save_state(self) -> dict[str, Any]:
        """The number, and the answers that are kept."""
        saved: dict[str, Any] = {"answers": self.sent, "kept_bytes": self._bytes}
        if self._kept:
            kept = zip(*(columns for columns, _ in self._kept), strict=True)
            joined = map(np.concatenate, kept)
            saved |= {f"kept_{name}": column for name, column in zip(NAMES, joined, strict=True)}
        return saved

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on behind these answers."""
        self.sent, self._bytes = int(saved["answers"]), int(saved["kept_bytes"])
        self._kept.clear()
        names = [f"kept_{name}" for name in NAMES]
        if names[0] in saved:
            self._kept.append((tuple(saved[name] for name in names), self._bytes))
