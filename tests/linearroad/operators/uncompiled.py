"""Runs the query network without a compiler: streams are lists, and kernels are plain functions.

Everything is computed on declaration. Only the methods that the Linear Road network uses exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import xstream as xs
from xstream.kernels import hashtable

Tuple = dict[str, Any]
_numbers = count()


class Emitter:
    """The parameter `out` of a kernel that emits."""

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields, self.emitted, self.ended = tuple(fields), [], False

    def emit_at(self, start: int, *values: Any) -> None:
        assert start == 0
        self.emitted.append(dict(zip(self.fields, map(_copied, values), strict=True)))


def _copied(value: Any) -> Any:
    """Segments never change after they were emitted."""
    return value.copy() if isinstance(value, np.ndarray) else value


class State(SimpleNamespace):
    """The arrays of a kernel; those that grow are replaced."""

    def grow(self, array: np.ndarray, length: int) -> np.ndarray:
        names = [name for name, mine in vars(self).items() if mine is array]
        assert names, "xs.grow takes a whole state array"
        if length > len(array):
            grown = np.zeros(length, array.dtype)
            grown[: len(array)] = array
            setattr(self, names[0], grown)
        return getattr(self, names[0])


def as_records(array: np.ndarray) -> np.ndarray:
    """Rows whose fields are attributes, as they are in compiled code."""
    return array.view(np.dtype((np.record, array.dtype))) if array.dtype.names else array


def with_record_types(modules: Iterable[ModuleType], monkeypatch: Any) -> None:
    """Replace the record types of modules, so that kernels make arrays of records."""
    for module in modules:
        for name, value in list(vars(module).items()):
            if isinstance(value, np.dtype) and value.names:
                monkeypatch.setattr(module, name, np.dtype((np.record, value)))


class PlainStream:
    """The tuples of a stream, and the methods that the network calls."""

    def __init__(self, tuples: Sequence[Tuple]) -> None:
        self.tuples, self.node = list(tuples), next(_numbers)

    def iterate(self, kernel: xs.Kernel, *arguments: Any, name: str = "") -> PlainStream:
        state = State(
            **{
                key: as_records(array.copy())
                for key, array in zip(kernel.state_names or (), kernel.states, strict=True)
            }
        )
        out = Emitter(kernel.out)
        before, xs.grow, hashtable.grow = xs.grow, state.grow, state.grow
        try:
            with np.errstate(over="ignore"):  # hashes wrap around
                for one in self.tuples:
                    self._call(kernel, one, arguments, state, out)
                if kernel.at_end and self.tuples:
                    out.ended = True
                    empty = {k: v[:0] if isinstance(v, np.ndarray) else 0 for k, v in one.items()}
                    self._call(kernel, empty, arguments, state, out)
        finally:
            xs.grow = hashtable.grow = before
        return PlainStream(out.emitted)

    def _call(
        self, kernel: xs.Kernel, one: Tuple, arguments: Sequence[Any], state: State, out: Emitter
    ) -> None:
        rest, given = iter(arguments), {**one, "state": state, "out": out}
        kernel(*(given[p] if p in given else next(rest) for p in kernel.parameters))

    def select(self, *names: str, name: str = "") -> PlainStream:
        return PlainStream([{key: one[key] for key in names} for one in self.tuples])

    def zip(self, *others: PlainStream, name: str = "") -> PlainStream:
        rows = zip(self.tuples, *(other.tuples for other in others), strict=True)
        return PlainStream([{key: v for one in row for key, v in one.items()} for row in rows])

    def merge(self, *others: PlainStream, by: str, tag: str, name: str = "") -> PlainStream:
        tagged = [
            {**one, tag: number}
            for number, stream in enumerate((self, *others))
            for one in stream.tuples
        ]
        return PlainStream(sorted(tagged, key=lambda one: one[by]))
