"""A query as an SVG picture, drawn without Graphviz: boxes for operators, curves for streams."""

from __future__ import annotations

import itertools
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from xstream.drawing import NODE_WIDTH, edge_label
from xstream.fusion import chains
from xstream.graph import Graph, Node
from xstream.layout import Box, layered

__all__ = ["Picture", "picture"]

#: Pixels: of a character and a line, around the text of a box, and around the picture.
CHARACTER, LINE, PADDING, MARGIN = 7.4, 16.0, 10.0, 14.0
#: A character beside an edge, and how far along an edge that text stands from its nearer end.
SMALL_CHARACTER, ALONG = 4.8, 0.36
_STYLE = (
    ".xs text{font:12px system-ui,sans-serif;fill:currentColor;text-anchor:middle}"
    ".xs .box{fill:none;stroke:currentColor;stroke-width:1.2}.xs .fused{stroke-dasharray:5 3}"
    ".xs .edge{fill:none;stroke:#7b8b9b;stroke-width:1.2}.xs .tip{fill:#7b8b9b}"
    ".xs .carried{font-size:9px;opacity:.85}"
    # Inside a page or a notebook it has the colour of the text; as a file of its own, this.
    ".xs:root{color:#33475b}@media(prefers-color-scheme:dark){.xs:root{color:#d5dee7}}"
)


class Written(NamedTuple):
    """A line of text beside an edge: its middle, its baseline, and what it says."""

    x: float
    y: float
    line: str


class Picture(str):
    """The text of an SVG file; a notebook shows it as a picture.

    >>> picture = Picture("<svg/>")
    >>> picture._repr_svg_()
    '<svg/>'
    """

    def _repr_svg_(self) -> str:
        return str(self)


def picture(query: Graph) -> Picture:
    """Draw a query; what an edge carries is written beside it, and whole in its tooltip."""
    texts = [textwrap.wrap(node.name, NODE_WIDTH) or [""] for node in query.nodes]
    boxes = [
        Box(CHARACTER * max(map(len, lines)) + 2 * PADDING, LINE * len(lines) + PADDING)
        for lines in texts
    ]
    ends = [
        (edge.node, node.id, port)
        for node in query.nodes
        for port, edge in enumerate(node.inputs)
        if edge is not None
    ]
    labels = [_label(query, query.nodes[second], port) for _, second, port in ends]
    wide = [box.width for box in boxes]
    for (first, second, _), lines in zip(ends, labels, strict=True):
        beside = first if _has_several(query.nodes[second]) else second
        wide[beside] = max(wide[beside], SMALL_CHARACTER * max(map(len, lines), default=0))
    # Neighbours stand as far apart as what is written on their edges needs.
    room = [Box(width, box.height) for width, box in zip(wide, boxes, strict=True)]
    found = layered(room, [(first, second) for first, second, _ in ends])
    fused = {number for chain in chains(query) for number in chain}
    shown = [
        _clipped(path, boxes[first], boxes[second])
        for (first, second, _), path in zip(ends, found.paths, strict=True)
    ]
    written = [
        _places(query.nodes[second], path, lines)
        for (_, second, _), path, lines in zip(ends, shown, labels, strict=True)
    ]
    width, height = found.width + 2 * MARGIN, found.height + 2 * MARGIN
    gaps, parts = _gaps([place for places in written for place in places], width, height)
    for (_, second, port), path, places in zip(ends, shown, written, strict=True):
        parts.extend(_edge(query, query.nodes[second], port, path, places, gaps))
    for node, box, lines, centre in zip(query.nodes, boxes, texts, found.centres, strict=True):
        parts.extend(_node(node, box, lines, centre, node.id in fused))
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="xs" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}" '
        'role="img">'
        f"<title>{escape(query.name)}</title><style>{_STYLE}</style>{''.join(parts)}</svg>"
    )


def _node(
    node: Node, box: Box, lines: Sequence[str], centre: tuple[float, float], fused: bool
) -> Iterator[str]:
    x, y = centre
    kind = "box fused" if fused else "box"
    rounded = 4 if node.operator.ports and node.outputs else box.height / 2
    note = f"{node.name} (compiled together with its neighbours)" if fused else node.name
    yield (
        f'<g><title>{escape(note)}</title><rect class="{kind}" x="{x - box.width / 2:.1f}" '
        f'y="{y - box.height / 2:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{rounded:.1f}"/>'
    )
    top = y - LINE * (len(lines) - 1) / 2 + 4
    for number, line in enumerate(lines):
        yield f'<text x="{x:.1f}" y="{top + LINE * number:.1f}">{escape(line)}</text>'
    yield "</g>"


def _clipped(
    path: Sequence[tuple[float, float]], first: Box, second: Box
) -> list[tuple[float, float]]:
    """An edge from the border of one box to that of the other."""
    if not path:  # an operator that feeds itself
        return []
    down = path[0][1] < path[-1][1]
    (x0, y0), (x1, y1) = path[0], path[-1]
    half0, half1 = first.height / 2, second.height / 2
    start = (x0, y0 + half0 if down else y0 - half0)
    return [start, *path[1:-1], (x1, y1 - half1 if down else y1 + half1)]


def _edge(
    query: Graph, node: Node, port: int, path: Sequence[tuple[float, float]],
    places: Sequence[Written], gaps: str,
) -> Iterator[str]:  # fmt: skip
    if not path:
        return
    origin = node.inputs[port]
    assert origin is not None
    carried = query.schema_of(origin)
    name = f"{node.operator.port_name(port)}: " if _has_several(node) else ""
    drawn = f"M{path[0][0]:.1f} {path[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        middle = (y0 + y1) / 2
        drawn += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    x, y = path[-1]
    back = -7 if path[-2][1] < y else 7
    yield (
        f'<g><title>{escape(f"{name}{carried}")}</title><path class="edge" {gaps}d="{drawn}"/>'
        f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.5 {back}h7z"/>'
    )
    for place in places:
        where = f'x="{place.x:.1f}" y="{place.y:.1f}"'
        yield f'<text class="carried" {where}>{escape(place.line)}</text>'
    yield "</g>"


def _places(node: Node, path: Sequence[tuple[float, float]], lines: Sequence[str]) -> list[Written]:
    """Where the lines of an edge's label stand.

    Edges from one operator part at their ends, edges to one operator at their beginnings.
    """
    if not path:
        return []
    (x0, y0), (_, y1) = path[:2] if _has_several(node) else path[:-3:-1]
    top = y0 + ALONG * (y1 - y0) + 3 - 10 * (len(lines) - 1) / 2
    return [Written(x0, top + 10 * number, line) for number, line in enumerate(lines)]


def _gaps(places: Sequence[Written], width: float, height: float) -> tuple[str, list[str]]:
    """The attribute and the mask that leave edges out behind text, on a ground of any colour."""
    if not places:
        return "", []
    area = f'x="{-MARGIN:.0f}" y="{-MARGIN:.0f}" width="{width:.0f}" height="{height:.0f}"'
    holes = "".join(
        f'<rect x="{place.x - half:.1f}" y="{place.y - 9:.1f}" width="{2 * half:.1f}" height="12"/>'
        for place in places
        for half in [SMALL_CHARACTER * len(place.line) / 2 + 2]
    )
    # Several pictures may be in one page.
    name = f"xs{zlib.crc32((area + holes).encode()):08x}"
    return f'mask="url(#{name})" ', [
        f'<mask id="{name}" maskUnits="userSpaceOnUse" {area}><rect {area} fill="#fff"/>{holes}'
        "</mask>"
    ]


def _has_several(node: Node) -> bool:
    return len(node.inputs) > 1


def _label(query: Graph, node: Node, port: int) -> list[str]:
    """What is written beside an edge: the port, if there are several, and what it carries."""
    origin = node.inputs[port]
    assert origin is not None
    name = f"{node.operator.port_name(port)}:" if _has_several(node) else ""
    return [line for line in (name, *edge_label(query.schema_of(origin))) if line][:2]
