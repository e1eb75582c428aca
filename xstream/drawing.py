"""A query as a picture in the language of Graphviz, with short labels."""

from __future__ import annotations

import textwrap

from xstream.engine.schema import Schema
from xstream.fusion import chains
from xstream.graph import Graph

__all__ = ["NODE_WIDTH", "dot", "edge_label"]

#: Characters per line in the label of a node.
NODE_WIDTH = 18
#: Characters of the field names on an edge; further fields are only counted.
EDGE_WIDTH = 32


def dot(query: Graph) -> str:
    """Return the graph; the label of an edge names its fields, its tooltip the whole schema."""
    lines = [
        f"digraph {_quoted(query.name)} {{",
        "  rankdir=TB; nodesep=0.35; ranksep=0.4;",
        "  node [shape=box, fontname=Helvetica, fontsize=12];",
        '  edge [fontname=Helvetica, fontsize=9, fontcolor="#5b6b7b", color="#5b6b7b"];',
    ]
    for number, chain in enumerate(chains(query)):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append('    label="compiled together"; fontname=Helvetica; fontsize=9;')
        lines.append('    style="rounded,dashed"; color="#8fa3b5"; fontcolor="#5b6b7b";')
        lines.append(f"    {' '.join(f'n{node};' for node in chain)}")
        lines.append("  }")
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
            shown = [*([port_name] if port_name else []), *edge_label(carried)]
            label = _quoted(*(f" {line} " for line in shown))  # a space between edge and label
            tooltip = _quoted(f"{port_name} {carried}".strip())
            lines.append(
                f"  n{edge.node} -> n{node.id} "
                f"[label={label}, tooltip={tooltip}, labeltooltip={tooltip}];"
            )
    return "\n".join([*lines, "}"]) + "\n"


def edge_label(carried: Schema) -> list[str]:
    """Return the lines of an edge's label: a type, or the first fields and their number."""
    if len(carried) == 1:
        return textwrap.wrap(str(carried), EDGE_WIDTH)
    names = ", ".join(field.name for field in carried)
    shown = textwrap.shorten(names, EDGE_WIDTH, placeholder=" …")
    return [shown] if shown == names else [shown, f"{len(carried)} fields"]


def _quoted(*lines: str) -> str:
    """Return a quoted string of one or several lines."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
