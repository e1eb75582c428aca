"""Panels: what an application shows on the live page beside the operators.

A panel is data, so that a recording can be shown without the application. `description` is written
once per run. What `update` returns is sent to the pages: `columns` are added to those that they
have, by their first value, and everything else replaces what they had.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

__all__ = ["KEPT_COLUMNS", "HeatMap", "Limits", "Panel", "merged"]

#: Columns of a heat map that are kept; older ones are dropped.
KEPT_COLUMNS = 1440


class Panel(Protocol):
    """Something that the live page shows beside the operators."""

    @property
    def description(self) -> Mapping[str, Any]:
        """What it is, as JSON; `name` is unique and `kind` is heat or limits."""

    def update(self) -> Mapping[str, Any] | None:
        """What is new since the last call, as JSON; None: nothing. From the thread of the view."""


class HeatMap:
    """A heat map that grows to the right: a column of values at a time, some of them marked.

    `limits` are the values of the first and the last colour; `colors` is slow-to-fast (red
    to blue) or amount (pale to dark), with `log` on a logarithmic scale. `marked` says what marks
    mean. Any thread may add columns.

    >>> speed = HeatMap("speed", "Speed, eastbound", rows=3, limits=(0, 100), unit="mi/h",
    ...                 across="stream minute", up="segment")
    >>> speed.add(0, [70.0, None, 12.5], marks=[2])
    >>> speed.update()
    {'columns': [[0, [70.0, None, 12.5], [2]]]}
    """

    def __init__(
        self, name: str, title: str, *, rows: int, limits: tuple[float, float], unit: str,
        across: str, up: str, colors: str = "slow-to-fast", marked: str = "", log: bool = False,
    ) -> None:  # fmt: skip
        self.description = {
            "name": name, "kind": "heat", "title": title, "rows": rows, "low": limits[0],
            "high": limits[1], "unit": unit, "across": across, "up": up, "colors": colors,
            "marked": marked, "log": log,
        }  # fmt: skip
        self._rows = rows
        self._new: list[list[Any]] = []
        self._lock = threading.Lock()

    def add(
        self, at: int, values: Iterable[float | None], marks: Iterable[int] = ()
    ) -> None:  # fmt: skip
        """Add the column of a number, such as a minute; None: no value."""
        shown = [
            None if value is None or not math.isfinite(value) else round(value, 1)
            for value in values
        ]
        if len(shown) != self._rows:
            raise ValueError(f"a column has {self._rows} values, not {len(shown)}")
        with self._lock:
            self._new.append([at, shown, list(marks)])
            del self._new[:-KEPT_COLUMNS]

    def update(self) -> Mapping[str, Any] | None:
        """The new columns."""
        with self._lock:
            new, self._new = self._new, []
        return {"columns": new} if new else None


class Limits:
    """Delays of several kinds of results, each against its limit.

    `read` returns by kind: p50, p99, worst and limit in seconds, and the number that was late, as
    `ResponseTimes.by_kind` does. It is called twice a second.

    >>> read = lambda: {"alerts": {"p50": 0.1, "p99": 0.8, "worst": 1.5, "limit": 5, "late": 0}}
    >>> Limits("response", "Response times", read).update()["rows"]
    [['alerts', 0.1, 0.8, 1.5, 5, 0]]
    """

    def __init__(
        self, name: str, title: str, read: Callable[[], Mapping[str, Mapping[str, float]]],
        unit: str = "s", empty: str = "",
    ) -> None:  # fmt: skip
        self.description = {
            "name": name, "kind": "limits", "title": title, "unit": unit, "empty": empty,
        }  # fmt: skip
        self._read = read
        self._last: Sequence[Any] = ()

    def update(self) -> Mapping[str, Any] | None:
        """All rows, if one of them has changed."""
        rows = [
            [name, *(found[key] for key in ("p50", "p99", "worst", "limit", "late"))]
            for name, found in self._read().items()
        ]
        if rows == self._last:
            return None
        self._last = rows
        return {"rows": rows}


def merged(state: dict[str, dict[str, Any]], updates: Mapping[str, Mapping[str, Any]]) -> None:
    """Add updates by the names of panels to a state, which is what a page has that saw them all."""
    for name, update in updates.items():
        own = state.setdefault(name, {})
        for key, value in update.items():
            if key == "columns":
                columns = own.setdefault("columns", [])
                columns.extend(value)
                del columns[:-KEPT_COLUMNS]
            else:
                own[key] = value
