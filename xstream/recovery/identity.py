"""What a query is, as plain data: its operators, their connections, what their streams carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from xstream.errors import InputError
from xstream.graph import Graph, Node
from xstream.kernels._fingerprint import code_digest
from xstream.kernels.apply import KernelApply
from xstream.kernels.kernel import Kernel
from xstream.kernels.rolling import Rolling

__all__ = ["check_identity", "identity_of"]

_LONGEST = 200


def identity_of(graph: Graph) -> dict[str, Any]:
    """The name of a query and its operators in order."""
    return {"name": graph.name, "operators": [_operator(graph, node) for node in graph.nodes]}


def _operator(graph: Graph, node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.operator.label,
        "inputs": [None if edge is None else [edge.node, edge.port] for edge in node.inputs],
        "outputs": [str(schema) for schema in node.outputs],
        "parameters": _parameters(graph, node),
    }


def _parameters(graph: Graph, node: Node) -> dict[str, str]:
    """The numbers and words that an operator was declared with; code and data by its form."""
    found: dict[str, str] = {}
    operator = node.operator
    if is_dataclass(operator):
        for parameter in fields(operator):
            if parameter.repr and parameter.init:
                found[parameter.name] = _shown(getattr(operator, parameter.name))
    edge = node.inputs[0] if node.inputs else None
    if isinstance(operator, KernelApply) and edge is not None:
        found["kernel"] = _code(operator.kernel_for(graph.schema_of(edge)))
    return found


@lru_cache(maxsize=1024)
def _code(kernel: Kernel) -> str:
    states = [
        f"{state}" if isinstance(state, Rolling) else str(state.dtype) for state in kernel.states
    ]
    return f"{code_digest(kernel.function)} {' '.join(states)}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, bool | int | float | complex | str | None):
        return repr(value)[:_LONGEST]
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_shown, value))}]"[: 10 * _LONGEST]
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    return type(value).__name__


def check_identity(found: Any, wanted: Mapping[str, Any], where: str) -> None:
    """Raise an InputError that names the first difference between two queries."""
    difference = _difference(found, wanted)
    if difference is not None:
        raise InputError(f"{where} is a checkpoint of another query: {difference}")


def _difference(found: Any, wanted: Mapping[str, Any]) -> str | None:
    theirs = found.get("operators") if isinstance(found, dict) else None
    if not isinstance(theirs, list) or not all(isinstance(each, dict) for each in theirs):
        return "it names no operators"
    ours: Sequence[Mapping[str, Any]] = wanted["operators"]
    if found.get("name") != wanted["name"]:
        return f"it is of {found.get('name')!r}, and this one is {wanted['name']!r}"
    for number, (his, own) in enumerate(zip(theirs, ours, strict=False)):
        for what in ("name", "kind", "inputs", "outputs"):
            if his.get(what) != own[what]:
                of = f"operator {number}" if what == "name" else f"the {what} of {own['name']!r}"
                return f"{of} was {_words(his.get(what))}, and is {_words(own[what])}"
        said = _parameter_difference(his.get("parameters"), own["parameters"])
        if said is not None:
            return f"{own['name']!r}: {said}"
    if len(theirs) != len(ours):
        return f"it has {len(theirs)} operators, and this one has {len(ours)}"
    return None


def _parameter_difference(his: Any, own: Mapping[str, str]) -> str | None:
    if not isinstance(his, dict):
        return "its parameters are not known"
    for name in sorted(set(his) | set(own)):
        if his.get(name) == own.get(name):
            continue
        if name == "kernel":
            return "its kernel was other code"
        return f"{name} was {his.get(name)}, and is {own.get(name)}"
    return None


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return repr(value)
