"""`xs.io.iterable`: any Python iterable as a stream, one item a tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from xstream.ops._python import PythonSource
from xstream.ops.native import NativePlan
from xstream.ops.operator import Operator
from xstream.ops.schema import Schema, SchemaLike, schema

__all__ = ["IterableSource", "iterable"]


@dataclass(frozen=True, eq=False)
class IterableSource(Operator):
    """Items of an iterable; each run asks for a fresh iterator."""

    kind = "iterable"
    ports = ()
    items: Iterable[Any] | Callable[[], Iterable[Any]] = field(repr=False)
    out: Schema = field(kw_only=True)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self.out,)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return PythonSource(plan, self._begin(), self.out, self.label).op

    def _begin(self) -> Iterator[Any]:
        """A fresh iterator; asked for with the first tuple, so that its errors name the source."""
        yield from self.items() if callable(self.items) else self.items


def iterable(items: Iterable[Any] | Callable[[], Iterable[Any]], out: SchemaLike) -> IterableSource:
    """Tuples from an iterable, or from a function that returns one: a generator, say.

    An iterator serves one run; a list or a function serves any number.

    >>> import xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out=(int, float))).collect()
    >>> q.run()[out]
    [(1, 0.5), (2, 0.25)]
    """
    return IterableSource(items, out=schema(out))
