"""Why a run failed: the error of its operator, with the tuple that the operator was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from xstream._native import ffi, lib
from xstream.assembly import Assembly
from xstream.engine._python import take_error
from xstream.engine.native import describe_tuple, read_slots
from xstream.engine.schema import Schema
from xstream.errors import InputError, OperatorError
from xstream.fusion import SingleTuple
from xstream.graph import Graph, Node, Port
from xstream.ops.basic import Count

__all__ = ["raise_at_end", "raise_failure"]

#: Runs a query with the scheduler and the manager of the run that failed.
Rerun = Callable[[Graph], None]


def raise_failure(built: Assembly, rerun: Rerun) -> NoReturn:
    """Raise the error of the operator that failed, or what was to end the program inside of it."""
    failure = ffi.new("xs_failure *")
    lib.xs_plan_failure(built.plan.handle, failure)
    node = built.node_of(failure.op)
    message = ffi.string(failure.message).decode(errors="replace")
    attachment = built.plan.attachment(built.ops[node.id])
    cause = take_error(built.ops[node.id])
    outside = None if cause is not None or attachment is None else attachment.error
    cause = cause or outside
    if cause is not None and not isinstance(cause, Exception):  # it is to end the program
        raise cause
    # What a file or a thread of a source or sink has met has nothing to do with the tuple.
    alone = failure.port < 0 or outside is not None or isinstance(cause, InputError)
    where = node.name if alone else _place(built, node, failure, rerun)
    if cause is None and built.regions.head_of(failure.op) is None:
        cause = node.operator.raised(failure.stand_in)
    if isinstance(cause, InputError):  # its message already names the operator and the cause
        raise InputError(_sentence(where, cause)) from cause
    if cause is not None:
        message = f"{type(cause).__name__}: {cause}"
    if cause is None and failure.out_of_memory:
        raise built.manager.out_of_memory(f"{where}: a result")
    raise OperatorError(f"{where}: {message}") from cause


def raise_at_end(built: Assembly, op: Any, error: BaseException) -> NoReturn:
    """Raise the error of an attachment that failed at the end of the run."""
    if not isinstance(error, Exception):
        raise error
    name = built.node_of(op).name
    if isinstance(error, InputError):
        raise InputError(_sentence(name, error)) from error
    raise OperatorError(f"{name}: {type(error).__name__}: {error}") from error


def _sentence(name: str, error: InputError) -> str:
    """What is wrong, with the name of the operator once."""
    written, said = name.removeprefix("write "), str(error)
    if said.startswith((f"{written}:", f"{written} ")):
        return name + said.removeprefix(written)
    return f"{name}: {said}"


def _place(built: Assembly, node: Node, failure: Any, rerun: Rerun) -> str:
    """The operator, its port and the tuple."""
    port = node.operator.port_name(failure.port)
    edge = node.inputs[failure.port]
    assert edge is not None
    schema = built.query.schema_of(edge)
    values = read_slots(failure.tuple, schema, built.plan.signals(schema))
    if chain := built.regions.rerun(node.id):
        rerun(_chain_alone(built, chain, schema, values))
    return f"{node.name}, port {port!r}, tuple {describe_tuple(values)}"


def _chain_alone(
    built: Assembly, chain: tuple[int, ...], schema: Schema, values: tuple[Any, ...]
) -> Graph:
    """A query that runs the operators of a region on one tuple.

    A loop that several operators share does not tell which of them failed; the query without
    fusion does.
    """
    graph = Graph(built.query.name)
    stream = Port(graph, graph.add_node(SingleTuple(schema, values), ()).id, 0)
    for number in chain:
        node = built.nodes[number]
        stream = Port(graph, graph.add_node(node.operator, (stream,), node.name).id, 0)
        if not node.outputs:
            break
    else:
        graph.add_node(Count(), (stream,))
    return graph
