"""State in Python: objects whose methods are operators, sinks or sources, and what each may keep.

A plain function is taken to keep nothing between calls. An object that does keep something says
what (`Recoverable`), or the query cannot be checkpointed.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from xstream.errors import GraphError
from xstream.graph import Node
from xstream.kernels.apply import PythonApply

__all__ = ["Recoverable", "check_functions", "owners_of"]

#: The state of an object: arrays, and what JSON can hold, by name.
Saved = Mapping[str, Any]


@runtime_checkable
class Recoverable(Protocol):
    """An object with state of its own that takes part in checkpoints.

    Its methods, or the object itself, are functions of operators, sinks or iterable sources. Both
    methods are called while no tuple is in flight.

    >>> import xstream as xs
    >>> class Tally:
    ...     def __init__(self):
    ...         self.seen = 0
    ...     def save_state(self):
    ...         return {"seen": self.seen}
    ...     def load_state(self, state):
    ...         self.seen = state["seen"]
    >>> tally = Tally()
    >>> tally.load_state({"seen": 3})
    >>> isinstance(tally, xs.Recoverable), tally.save_state()
    (True, {'seen': 3})
    """

    def save_state(self) -> Saved:
        """Everything that it keeps between calls: arrays, and what JSON can hold, by name.

        Files that it writes are flushed to disk.
        """

    def load_state(self, saved: Saved) -> None:
        """Go on from such a state; called before a run begins."""


def owner_of(function: Any) -> Any:
    """The object that a function belongs to; None for a plain function."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, types.MethodType):
        return function.__self__
    plain = (types.FunctionType, types.BuiltinFunctionType, type, types.MethodWrapperType)
    return None if isinstance(function, plain) else function


def _functions(node: Node) -> Iterator[Callable[..., Any]]:
    operator = node.operator
    if isinstance(operator, PythonApply):
        yield operator.given if operator.given is not None else operator.function
        if operator.finish is not None:
            yield operator.finish
    items = getattr(operator, "items", None)
    if not operator.ports and items is not None:
        yield items


def owners_of(nodes: Sequence[Node]) -> dict[str, Recoverable]:
    """The objects with state, by the names of the first operators that use them."""
    found: dict[str, Recoverable] = {}
    seen: set[int] = set()
    for node in nodes:
        for function in _functions(node):
            owner = owner_of(function)
            if isinstance(owner, Recoverable) and id(owner) not in seen:
                seen.add(id(owner))
                found[node.name] = owner
    return found


def check_functions(nodes: Sequence[Node]) -> None:
    """Raise a GraphError for a Python operator that keeps state which nobody saves.

    Sinks are exempt: after a crash they may be called again for tuples that they have seen.
    """
    for node in nodes:
        if not isinstance(node.operator, PythonApply) or node.operator.how == "sink":
            continue
        for function in _functions(node):
            if (what := _keeps(function)) is not None:
                raise GraphError(
                    f"{node.name} cannot be part of a checkpoint: {what}; use a kernel with state, "
                    "or an object with the methods save_state and load_state (docs/recovery.md)"
                )


def _keeps(function: Any) -> str | None:
    """What a function keeps between calls, as a clause; None if nothing is known."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = owner_of(function)
    if owner is not None:
        if isinstance(owner, Recoverable | types.ModuleType):
            return None
        return f"its function is of an object ({type(owner).__name__}) whose state is not known"
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    for step in dis.get_instructions(code):
        closed = step.opname == "STORE_DEREF" and step.argval in code.co_freevars
        if closed or step.opname == "STORE_GLOBAL":
            return f"its function changes {step.argval!r}, which is kept between calls"
    return None
