"""The oracle of records: SQL by DuckDB, evaluated once for all windows.

A query has one of two forms. Where it returns, beside its bindings, `first_ms` and `last_ms`, the
times of the earliest and the latest item that a binding comes from, it is evaluated once over the
whole stream: a window has the bindings whose items all lie in it. Otherwise it joins the table
`scopes` (scope, start_ms, end_ms), one row for each range, and returns the column `scope`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream import InputError
from xstream.console import require_package
from yabench.bindings import Bag, Binding, bag_size, binding_of
from yabench.columns import Columns
from yabench.near import NearBindings
from yabench.oracle import Oracle
from yabench.weather import Records
from yabench.windows import Scope

__all__ = ["SqlOracle"]

_SPAN = ("first_ms", "last_ms")


class SqlOracle(Oracle):
    """A SQL query over the table `items` (time, observation, station, property, value)."""

    def __init__(self, records: Records, query: str) -> None:
        require_package("duckdb")
        import duckdb

        if not len(records):
            raise InputError("the stream has no items: no station reports within its duration")
        self._errors = duckdb.Error
        self.query = query
        self._times = records.time
        self.times = np.unique(records.time).tolist()
        self._connection = duckdb.connect(":memory:", config={"threads": 2})
        self._connection.register("items", records.table())
        self._connection.execute(
            "CREATE TABLE scopes (scope BIGINT, start_ms BIGINT, end_ms BIGINT)"
        )
        names = self._names()
        self.monotone = all(name in names for name in _SPAN)
        self.variables = tuple(name for name in names if name not in (*_SPAN, "scope"))
        if not self.monotone and "scope" not in names:
            raise InputError(
                "the oracle's query must return first_ms and last_ms, or the column scope of the "
                "table scopes"
            )
        self._cache: dict[Scope, Bag] = {}
        self.finds_borders = self.monotone
        if self.monotone:
            self._evaluate_spans()

    def _run(self, query: str) -> Any:
        try:
            return self._connection.execute(query)
        except self._errors as error:
            raise InputError(f"the oracle's query failed: {str(error).splitlines()[0]}") from error

    def _names(self) -> list[str]:
        return [name for name, *_ in self._run(f"DESCRIBE {self.query}").fetchall()]

    def _evaluate_spans(self) -> None:
        """Evaluate the query over the whole stream; bindings are kept in order of `last_ms`."""
        names = ", ".join(f'"{name}"' for name in (*self.variables, *_SPAN))
        ordered = f"SELECT {names} FROM ({self.query.rstrip().rstrip(';')}) ORDER BY last_ms"
        columns = self._run(ordered).fetchnumpy()
        self._first, self._last = (np.asarray(columns[name], np.int64) for name in _SPAN)
        self._found = {name: columns[name] for name in self.variables}
        numbers = all(
            isinstance(c, np.ndarray) and c.dtype.kind in "iuf" and not np.ma.isMaskedArray(c)
            for c in self._found.values()
        )
        self._numbers = (
            Columns({n: _number(c) for n, c in self._found.items()}) if numbers else None
        )

    @cached_property
    def _bindings(self) -> list[Binding]:
        """All bindings; only for results that are not compared column by column."""
        if self._numbers is not None:
            return self._numbers.bindings()
        lists = [column.tolist() for column in self._found.values()]
        names = self.variables
        return [binding_of(dict(zip(names, row, strict=True))) for row in zip(*lists, strict=True)]

    def columns(self, scope: Scope) -> Columns | None:
        """Return the results for the records in a range as columns."""
        if not self.monotone or self._numbers is None:
            return None
        rows = self._within(scope)
        return Columns({name: array[rows] for name, array in self._numbers.arrays.items()})

    def results(self, scope: Scope) -> Bag:
        """Return the results for the records in a range."""
        found = self._cache.get(scope)
        if found is None and self.monotone:
            rows = self._within(scope).tolist()
            found = self._cache[scope] = Bag(self._bindings[row] for row in rows)
        elif found is None:
            self.prepare([scope])
            found = self._cache[scope]
        return found

    def _within(self, scope: Scope) -> NDArray[np.int64]:
        low, high = np.searchsorted(self._last, scope)
        return np.asarray(low + np.flatnonzero(self._first[low:high] >= scope.start), np.int64)

    def arrivals(self, scope: Scope, since: int) -> list[tuple[int, Binding]] | None:
        """Return the bindings of a range that are complete at `since` or later, and when."""
        if not self.monotone:
            return None
        rows = (row for row in self._within(scope).tolist() if self._last[row] >= since)
        return [(int(self._last[row]), self._bindings[row]) for row in rows]

    def prepare(self, scopes: Sequence[Scope]) -> None:
        """Evaluate a query that joins `scopes` for all ranges at once."""
        if self.monotone:
            return
        wanted = [scope for scope in dict.fromkeys(scopes) if scope not in self._cache]
        if not wanted:
            return
        rows = np.array([(number, *scope) for number, scope in enumerate(wanted)], np.int64)
        self._fill(rows)
        names = ", ".join(f'"{name}"' for name in ("scope", *self.variables))
        found = self._run(f"SELECT {names} FROM ({self.query.rstrip().rstrip(';')})").fetchall()
        for scope in wanted:
            self._cache[scope] = Bag()
        for number, *terms in found:
            binding = binding_of(dict(zip(self.variables, terms, strict=True)))
            self._cache[wanted[number]][binding] += 1

    def _fill(self, rows: NDArray[np.int64]) -> None:
        import pyarrow as pa

        names = ("scope", "start_ms", "end_ms")
        table = pa.table({name: rows[:, place] for place, name in enumerate(names)})
        self._connection.register("scopes_arrow", table)
        self._connection.execute("DELETE FROM scopes")
        self._connection.execute("INSERT INTO scopes SELECT * FROM scopes_arrow")
        self._connection.unregister("scopes_arrow")

    def items(self, scope: Scope) -> int:
        """Return the number of records in a range."""
        low, high = np.searchsorted(self._times, scope)
        return max(0, int(high - low))

    def best_scope(
        self, actual: Bag, starts: Sequence[int], ends: Sequence[int], origin: Scope
    ) -> Scope | None:
        """Return the range of these borders whose results fit best.

        Starts are tried from the last to the first: an earlier start adds the bindings whose first
        item lies before the next start, and each adds one to all ends behind its last item.
        """
        if not self.monotone:
            return None
        low, high = np.searchsorted(self._last, (starts[0], ends[-1]))
        rows = low + np.flatnonzero(self._first[low:high] >= starts[0])
        bindings = [self._bindings[row] for row in rows.tolist()]
        known = set(bindings)
        if len(known) < len(bindings):
            return None
        reported = _reported(known, actual)
        if reported is None:
            return None
        hit = np.array([binding in reported for binding in bindings], np.int64)
        start_of = np.searchsorted(starts, self._first[rows], side="right") - 1
        end_of = np.searchsorted(ends, self._last[rows], side="right")
        return _best(hit, start_of, end_of, starts, ends, origin, bag_size(actual))


def _reported(known: set[Binding], actual: Bag) -> set[Binding] | None:
    """Return which bindings of a query were reported; None if numbers leave several answers."""
    found = {binding for binding in known if binding in actual}
    others = [binding for binding in actual if binding not in known]
    near = NearBindings(known) if others else None
    for binding in others:
        equal = near.equal_to(binding) if near is not None else []
        if len(equal) > 1 or (equal and equal[0] in found):
            return None
        found.update(equal)
    return found


def _best(
    hit: NDArray[np.int64],
    start_of: NDArray[np.int64],
    end_of: NDArray[np.int64],
    starts: Sequence[int],
    ends: Sequence[int],
    origin: Scope,
    size: int,
) -> Scope:
    found = np.zeros(len(ends), np.int64)
    expected = np.zeros(len(ends), np.int64)
    end_times = np.asarray(ends)
    end_shift = np.abs(end_times - origin.end)
    best: tuple[float, int, int, int] = (-1.0, 0, 0, 0)
    by_start = np.argsort(start_of, kind="stable")
    bounds = np.searchsorted(start_of[by_start], np.arange(len(starts) + 1))
    for place in range(len(starts) - 1, -1, -1):
        rows = by_start[bounds[place] : bounds[place + 1]]
        if len(rows):
            counts = np.bincount(end_of[rows], minlength=len(ends) + 1)[: len(ends)]
            hits = np.bincount(end_of[rows], hit[rows], len(ends) + 1)[: len(ends)]
            expected += np.cumsum(counts)
            found += np.cumsum(hits).astype(np.int64)
        total = expected + size
        fit = np.where(total > 0, 2 * found / np.maximum(total, 1), 1.0)
        fit[end_times < starts[place]] = -1.0
        top = fit.max()
        shift = np.where(fit == top, end_shift, np.iinfo(np.int64).max)
        chosen = int(shift.argmin())  # the earliest of equals
        moved = abs(starts[place] - origin.start) + int(end_shift[chosen])
        best = max(best, (float(top), -moved, -starts[place], -ends[chosen]))
    return Scope(-best[2], -best[3])


def _number(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.float64 if column.dtype.kind == "f" else np.int64, copy=False)
