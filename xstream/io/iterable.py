"""`xs.io.iterable`: any Python iterable as a stream, one item per tuple."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from xstream.engine._python import PythonSource
from xstream.engine.attachment import Outcome, Position
from xstream.engine.native import NativePlan
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema, SchemaLike, schema
from xstream.errors import SchemaError

__all__ = ["IterableSource", "iterable"]


@dataclass(frozen=True, eq=False)
class IterableSource(Operator):
    """Items of an iterable; each run creates a new iterator."""

    kind = "iterable"
    ports = ()
    items: Iterable[Any] | Callable[[], Iterable[Any]] = field(repr=False)
    out: Schema = field(kw_only=True)
    #: Whether an iterator was used up by any run.
    used_up: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self.out,)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        taken = _Taken(self.items)
        source = PythonSource(plan, taken.of(self._begin()), self.out, self.label)
        plan.attach(source.op, taken)
        return source.op

    def _begin(self) -> Iterator[Any]:
        """A new iterator; created with the first tuple, so that its errors name the source."""
        items = self.items() if callable(self.items) else self.items
        if not isinstance(items, Iterable):
            raise _not_iterable(items)
        iterator = isinstance(items, Iterator)
        if iterator and (self.used_up.is_set() or _is_closed(items)):
            raise SchemaError(
                f"{self.label}: its iterator has been used up, and an iterator serves one run; "
                "give a list, or a function that returns a new iterator for each run"
            )
        yield from items
        if iterator and not callable(self.items):
            self.used_up.set()


class _Taken:
    """Counts the items that were taken; a run that goes on leaves them out.

    An object with a state of its own (`xs.Recoverable`) goes on by itself.
    """

    error: BaseException | None = None

    def __init__(self, items: object) -> None:
        owner = getattr(items, "__self__", items)
        self._by_itself = callable(getattr(owner, "load_state", None))
        self.count, self._left_out = 0, 0

    def of(self, items: Iterator[Any]) -> Iterator[Any]:
        """The items that are to be taken."""
        for item in islice(items, self._left_out, None):
            self.count += 1
            yield item

    def begin(self) -> None:
        """Nothing has to be opened."""

    def end(self, outcome: Outcome) -> None:
        """Nothing has to be closed."""

    def position(self) -> Position:
        """The number of items so far."""
        return {"items": self.count}

    def restore(self, position: Position) -> None:
        """Leave out the items that an earlier run has taken."""
        self.count = int(position["items"])
        self._left_out = 0 if self._by_itself else self.count


def _not_iterable(items: object) -> SchemaError:
    return SchemaError(
        f"iterable: tuples come from an iterable, or from a function that returns one, not from "
        f"{items!r}"
    )


def _is_closed(items: object) -> bool:
    return isinstance(items, Generator) and inspect.getgeneratorstate(items) == inspect.GEN_CLOSED


def iterable(items: Iterable[Any] | Callable[[], Iterable[Any]], out: SchemaLike) -> IterableSource:
    """Tuples from an iterable, or from a function that returns one: a generator, say.

    An iterator serves one run; a list or a function serves any number.

    >>> import xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out=(int, float))).collect()
    >>> q.run()[out]
    [(1, 0.5), (2, 0.25)]
    """
    if not callable(items) and not isinstance(items, Iterable):
        raise _not_iterable(items)
    return IterableSource(items, out=schema(out))
