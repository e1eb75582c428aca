"""Recorded results of engines: one JSON document with `relations`, or one JSON object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from lzma import LZMAError
from pathlib import Path
from typing import Any

import numpy as np

from xstream import InputError
from yabench.bindings import Bag, binding_of
from yabench.columns import Columns
from yabench.stream import OPENERS

__all__ = ["Answer", "answer_of", "columns_of_arrow", "read_answers", "recorded"]

#: Results with more bindings than this are kept as Arrow files beside the others.
MOST_INLINE = 10_000
#: Names of what a result consists of, and of what is said about it.
_CONTENT, _ABOUT = {"bindings", "results"}, {"timestamp", "head", "arrival_ms"}
_FILE_NAME = re.compile(r"result-\d{1,9}\.arrow")


class Answer:
    """One result of an engine: its bindings as a multiset, or as columns of numbers."""

    def __init__(
        self,
        bindings: Bag | Columns,
        named_ms: int | None = None,
        arrival_ms: float | None = None,
        variables: tuple[str, ...] = (),
    ) -> None:
        self._given = bindings
        #: The time that the engine gave it, in ms: the end of its window, or when it was reported.
        self.named_ms = named_ms
        #: When it arrived, in ms after the start of the stream.
        self.arrival_ms = arrival_ms
        #: The variables in the order in which the engine named them; empty where it did not.
        self.variables = variables

    @cached_property
    def bindings(self) -> Bag:
        """The multiset of bindings."""
        return self._given.bag() if isinstance(self._given, Columns) else self._given

    @property
    def columns(self) -> Columns | None:
        """The bindings as columns, where they came so."""
        return self._given if isinstance(self._given, Columns) else None

    @property
    def empty(self) -> bool:
        """Whether it has no bindings."""
        return not len(self._given)

    def with_bindings(self, bindings: Bag) -> Answer:
        """Return the same result with other bindings."""
        return Answer(bindings, self.named_ms, self.arrival_ms, self.variables)

    @property
    def time_ms(self) -> float | None:
        """When it arrived; the time that it was given if no arrival was recorded."""
        return self.named_ms if self.arrival_ms is None else self.arrival_ms


def read_answers(path: Path) -> list[Answer]:
    """Read the results of an engine in the order in which it gave them."""
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, EOFError, UnicodeDecodeError, LZMAError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    try:
        return [
            answer_of(part, path.parent) for found in _relations(text) for part in _by_time(found)
        ]
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


def _by_time(relation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Divide a result without a time by the times of its bindings, if they have several."""
    results = relation.get("results", relation)
    rows = results.get("bindings") if isinstance(results, Mapping) else results
    parts: dict[Any, list[Any]] = {}
    if relation.get("timestamp") is None and isinstance(rows, list):
        for row in rows:
            timed = isinstance(row, Mapping) and isinstance(row.get("binding"), Mapping)
            parts.setdefault(str(row.get("timestamp")) if timed else None, []).append(row)
    if len(parts) < 2:
        yield relation
        return
    rest = {key: value for key, value in relation.items() if key != "results"}
    for same in parts.values():
        yield {**rest, "bindings": same}


def _parsed(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InputError(f"result {number} is not JSON: {error}") from error


def answer_of(relation: Mapping[str, Any], folder: Path | None = None) -> Answer:
    """Return one result; columns that are in a file of their own are read from a folder.

    >>> found = answer_of({"timestamp": 5000, "bindings": [{"avg": 3.5}]})
    >>> found.named_ms, found.bindings.total()
    (5000, 1)
    """
    if "arrow_file" in relation:
        columns: Columns | Any = _read_columns(relation["arrow_file"], folder)
        return Answer(columns, _time(relation.get("timestamp")), _arrival(relation))
    if isinstance(relation.get("columns"), Columns):
        return Answer(relation["columns"], _time(relation.get("timestamp")), _arrival(relation))
    if "columns" in relation:
        return _columnar(relation)
    if not _CONTENT & relation.keys() and (others := sorted(relation.keys() - _ABOUT)):
        raise InputError(f"a result has `bindings` or `results`; this one has {', '.join(others)}")
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


def columns_of_arrow(body: Any) -> Columns:
    """Return the columns of an Arrow stream; they are whole numbers or floats."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(body) as stream:
            table = stream.read_all()
        table.validate(full=True)
        arrays: dict[str, Any] = {}
        for name in table.column_names:
            array = table.column(name).to_numpy()
            if array.dtype.kind not in "iuf":
                raise InputError(f"the column {name!r} of a result is not of numbers")
            kind = np.float64 if array.dtype.kind == "f" else np.int64
            arrays[name.lstrip("?$")] = np.asarray(array, kind)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"a result is not an Arrow stream: {error}") from error
    return Columns(arrays)


def _read_columns(name: Any, folder: Path | None) -> Columns:
    if folder is None or not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be the file of a result")
    try:
        return columns_of_arrow((folder / name).read_bytes())
    except OSError as error:
        raise InputError(f"{folder / name} cannot be read: {error}") from error


def recorded(results: Iterable[Mapping[str, Any]], folder: Path) -> Iterator[str]:
    """Yield the lines of a file of results; large ones become Arrow files in the same folder."""
    import pyarrow as pa

    for number, result in enumerate(results, start=1):
        columns = result.get("columns")
        line = dict(result)
        if isinstance(columns, Columns) and len(columns) > MOST_INLINE:
            del line["columns"]
            line["arrow_file"] = f"result-{number}.arrow"
            table = pa.table(columns.arrays)
            with pa.ipc.new_stream(str(folder / line["arrow_file"]), table.schema) as stream:
                stream.write_table(table)
        elif isinstance(columns, Columns):
            line["columns"] = {name: array.tolist() for name, array in columns.arrays.items()}
        yield json.dumps(line) + "\n"


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
