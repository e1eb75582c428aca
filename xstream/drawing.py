"""A query as a picture: Graphviz's language, with labels short enough to read."""

from __future__ import annotations

import textwrap

from xstream.engine.schema import Schema
from xstream.graph import Graph

__all__ = ["dot"]

#: Characters in a line of a node's label.
NODE_WIDTH = 18
#: Characters of field names on an edge; further fields are counted only.
EDGE_WIDTH = 32


def dot(query: Graph) -> str:
    """The graph; an edge names its fields, and its tooltip has the whole schema."""
    lines = [
        f"digraph {_quoted(query.name)} {{",
        "  rankdir=TB; nodesep=0.35; ranksep=0.4;",
        "  node [shape=box, fontname=Helvetica, fontsize=12];",
        '  edge [fontname=Helvetica, fontsize=9, fontcolor="#5b6b7b", color="#5b6b7b"];',
    ]
    for node in query.nodes:
        shape = "" if node.operator.ports and node.outputs else ", style=rounded"
        label = _quoted(*textwrap.wrap(node.name, NODE_WIDTH))
        lines.append(f"  n{node.id} [label={label}, tooltip={_quoted(node.name)}{shape}];")
    for node in query.nodes:
        for port, edge in enumerate(node.inputs):
            if edge is None:
                continue
            carried = query.schema_of(edge)
            port_name = f"{node.operator.port_name(port)}:" if len(node.inputs) > 1 else ""
            shown = [*([port_name] if port_name else []), *_edge_label(carried)]
            label = _quoted(*(f" {line} " for line in shown))  # a space between edge and label
            tooltip = _quoted(f"{port_name} {carried}".strip())
            lines.append(
                f"  n{edge.node} -> n{node.id} "
                f"[label={label}, tooltip={tooltip}, labeltooltip={tooltip}];"
            )
    return "\n".join([*lines, "}"]) + "\n"


def _edge_label(carried: Schema) -> list[str]:
    """The lines of an edge's label: a type, or the names of the first fields and their number."""
    if len(carried) == 1:
        return textwrap.wrap(str(carried), EDGE_WIDTH)
    names = ", ".join(field.name for field in carried)
    shown = textwrap.shorten(names, EDGE_WIDTH, placeholder=" …")
    return [shown] if shown == names else [shown, f"{len(carried)} fields"]


def _quoted(*lines: str) -> str:
    """A string in Graphviz's language, of one line or several."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
