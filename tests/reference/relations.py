"""Relations as a dictionary, with the uses of all streams put into one order first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
Key = tuple[int, ...]


def in_order(streams: Sequence[Sequence[Row]], by: str | None) -> list[tuple[int, Row]]:
    """(stream, tuple) in the order of a field; equal ones by stream, then as they came."""
    tagged = [(port, row) for port, rows in enumerate(streams) for row in rows]
    return sorted(tagged, key=lambda item: (item[1][by], item[0])) if by else tagged


def changed(old: Any, how: str, x: Any, fresh: bool) -> Any:
    if how == "add":
        return old + x
    if how == "set" or fresh:
        return x
    return {"min": min, "max": max}[how](old, x)


class Table:
    """Values by key."""

    def __init__(self, key: Sequence[str], zeros: Row, rows: Sequence[Row] = ()) -> None:
        self.key, self.zeros = key, zeros
        self.rows: dict[Key, Row] = {self.key_of(row): {n: row[n] for n in zeros} for row in rows}

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.key)

    def look_up(self, row: Row) -> tuple[bool, Row]:
        found = self.rows.get(self.key_of(row))
        return found is not None, dict(found or self.zeros)

    def update(self, row: Row, values: Sequence[tuple[str, str, Any]], delete: bool) -> Row:
        """The values after the change, or before the row is removed."""
        key = self.key_of(row)
        if delete:
            return self.rows.pop(key, dict(self.zeros))
        fresh = key not in self.rows
        own = self.rows.setdefault(key, dict(self.zeros))
        for name, how, source in values:
            x = row[source] if isinstance(source, str) else source
            own[name] = changed(own[name], how, x, fresh)
        return dict(own)

    def columns(self) -> dict[str, list[Any]]:
        """Sorted by key."""
        ordered = sorted(self.rows.items())
        keys = {name: [key[i] for key, _ in ordered] for i, name in enumerate(self.key)}
        return keys | {name: [row[name] for _, row in ordered] for name in self.zeros}
