"""Snapshots as JSON: the header of a run, and a frame for each snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from xstream.drawing import edge_label
from xstream.layout import Box, layered
from xstream.live.panels import Panel
from xstream.snapshot import COLUMNS, Rates, Snapshot

if TYPE_CHECKING:
    from xstream.run import Run
    from xstream.statistics import Delays

__all__ = ["NODE", "VERSION", "encoded", "frame_of", "header_of", "with_layout"]

#: Of the format: of recordings, and of what the page reads.
VERSION = 1
#: The size of an operator on the page.
NODE = Box(168.0, 56.0)


def encoded(value: Any) -> bytes:
    """Return JSON in one line, without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def header_of(run: Run, panels: Sequence[Panel]) -> dict[str, Any]:
    """Return what does not change during a run: its operators, streams, settings and panels."""
    query = run.query
    nodes, edges = [], []
    for node in query.nodes:
        kind = "source" if not node.operator.ports else "sink" if not node.outputs else "operator"
        nodes.append([node.name, kind])
        for port, edge in enumerate(node.inputs):
            if edge is None:
                continue
            carried = query.schema_of(edge)
            port_name = node.operator.port_name(port) if len(node.inputs) > 1 else ""
            shown = " ".join(edge_label(carried))
            edges.append(
                [edge.node, node.id, port, port_name, shown, len(query.nodes[edge.node].outputs)]
            )
    return {
        "xstream_live": VERSION,
        "query": query.name,
        "began": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "scheduler": run.scheduler.name,
        "manager": run.manager.name,
        "columns": COLUMNS,
        "nodes": nodes,
        "edges": edges,
        "panels": [panel.description for panel in panels],
    }


def with_layout(header: Mapping[str, Any], flow: str = "down") -> dict[str, Any]:
    """Return a header with the place of each operator, and the bends of each stream.

    `flow` is down, or right: for narrow pages and for wide ones.
    """
    nodes, edges = header["nodes"], header["edges"]
    down = flow != "right"
    box = NODE if down else Box(NODE.height, NODE.width)
    found = layered([box] * len(nodes), [(edge[0], edge[1]) for edge in edges])
    size = (found.width, found.height) if down else (found.height, found.width)

    def rounded(points: Sequence[tuple[float, float]]) -> list[list[int]]:
        return [[round(x), round(y)] if down else [round(y), round(x)] for x, y in points]

    return {
        **header,
        "layout": {
            "flow": "down" if down else "right",
            "node": [NODE.width, NODE.height],
            "size": [round(length) for length in size],
            "centres": rounded(found.centres),
            "paths": [rounded(path) for path in found.paths],
        },
    }


def frame_of(
    last: Snapshot, before: Snapshot | None, process_bytes: int, phase: str, message: str = ""
) -> dict[str, Any]:
    """Return a frame: the counters, and the rates since an earlier snapshot."""
    rates = Rates(last, before if before is not None else last)
    frame: dict[str, Any] = {
        "t": round(last.wall_s, 3),
        "phase": phase,
        "counters": last.counters.T.tolist(),
        "busy": np.round(rates.busy, 3).tolist(),
        "waiting": last.waiting.tolist(),
        "pressure": np.round(rates.pressure, 2).tolist(),
        "memory": {
            "live": last.memory.live_bytes, "peak": last.memory.peak_bytes,
            "segments": last.memory.live_segments, "copied": last.memory.bytes_copied,
            "queues": last.queue_bytes, "process": process_bytes,
        },
    }  # fmt: skip
    if last.rings:
        frame |= {"rings": [round(fill, 2) for fill in last.rings], "parts": last.parts}
    if message:
        frame["message"] = message
    for name, delays in (("lateness", last.lateness), ("latency", last.latency)):
        if delays:
            frame[name] = {source: _plain(each) for source, each in delays.items()}
    if last.network:
        frame["network"] = last.network
    return frame


def _plain(delays: Delays) -> list[int]:
    return [delays.count, delays.p50_ns, delays.p99_ns, delays.worst_ns]
