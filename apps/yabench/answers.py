"""Recorded results of engines: one JSON document with `relations`, or one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xstream import InputError
from yabench.bindings import Bag, binding_of

__all__ = ["Answer", "answer_of", "read_answers"]


@dataclass(frozen=True)
class Answer:
    """One result of an engine."""

    bindings: Bag
    #: The time that the engine gave it, in ms: the end of its window, or when it was reported.
    named_ms: int | None = None
    #: When it arrived, in ms after the start of the stream.
    arrival_ms: float | None = None
    #: The variables in the order in which the engine named them; empty where it did not.
    variables: tuple[str, ...] = field(default=(), compare=False)

    @property
    def time_ms(self) -> float | None:
        """When it arrived; the time that it was given if no arrival was recorded."""
        return self.named_ms if self.arrival_ms is None else self.arrival_ms


def read_answers(path: Path) -> list[Answer]:
    """Read the results of an engine in the order in which it gave them."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    try:
        return [answer_of(relation) for relation in _relations(text)]
    except (InputError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from error


def _relations(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the results of a document; of lines if it is not one document."""
    try:
        document = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        documents: Any = [_parsed(line, number) for number, line in enumerate(lines, start=1)]
    else:
        documents = document
        if isinstance(document, Mapping):
            documents = document.get("relations", [document])
    if not isinstance(documents, Sequence) or isinstance(documents, str):
        raise InputError("expected a list of results, or an object with `relations`")
    for relation in documents:
        if not isinstance(relation, Mapping):
            raise InputError(f"a result is an object, not {str(relation)[:80]!r}")
        if "ready" not in relation:
            yield relation


def _parsed(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InputError(f"result {number} is not JSON: {error}") from error


def answer_of(relation: Mapping[str, Any]) -> Answer:
    """Return one result.

    >>> found = answer_of({"timestamp": 5000, "bindings": [{"avg": 3.5}]})
    >>> found.named_ms, found.bindings.total()
    (5000, 1)
    """
    if "columns" in relation:
        return _columnar(relation)
    results = relation.get("results", relation)
    rows = results.get("bindings", []) if isinstance(results, Mapping) else results
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InputError(f"the bindings of a result are a list, not {str(rows)[:80]!r}")
    bag: Bag = Bag()
    times: set[int] = set()
    for row in rows:
        if not isinstance(row, Mapping):
            raise InputError(f"a binding is an object, not {str(row)[:80]!r}")
        if isinstance(row.get("binding"), Mapping):
            own = _time(row.get("timestamp"))
            times |= set() if own is None else {own}
            row = row["binding"]
        bag[binding_of(row)] += 1
    named = _time(relation.get("timestamp"))
    if named is None and len(times) == 1:
        (named,) = times
    head = relation.get("head")
    names = head.get("vars", ()) if isinstance(head, Mapping) else ()
    variables = tuple(str(name).lstrip("?$") for name in names)
    return Answer(bag, named, _arrival(relation), variables)


def _columnar(relation: Mapping[str, Any]) -> Answer:
    """Return a result whose bindings are given as one list per variable."""
    columns = relation["columns"]
    lists = columns.values() if isinstance(columns, Mapping) else [columns]
    whole = all(isinstance(column, list) for column in lists)
    if not isinstance(columns, Mapping) or not whole or len(set(map(len, lists))) > 1:
        raise InputError("the columns of a result are lists of one length, one for each variable")
    names = sorted(columns)
    rows: Iterable[Sequence[Any]] = zip(*(columns[name] for name in names), strict=True)
    bag = Bag(binding_of(dict(zip(names, row, strict=True))) for row in rows)
    return Answer(bag, _time(relation.get("timestamp")), _arrival(relation))


def _arrival(relation: Mapping[str, Any]) -> float | None:
    arrival = relation.get("arrival_ms")
    if arrival is not None and not isinstance(arrival, int | float):
        raise InputError(f"an arrival is a number of ms, not {arrival!r}")
    return arrival


def _time(value: Any) -> int | None:
    """Return a time in ms; null and an empty text are no time."""
    if value is None or value == "":
        return None
    try:
        time_ms = float(value)
        if isinstance(value, bool) or not abs(time_ms) < 2**62:
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"a timestamp is a number of ms or null, not {value!r}") from None
    return int(time_ms) if time_ms == int(time_ms) else round(time_ms)
