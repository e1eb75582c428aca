"""Runs the query network over rows in memory and returns its answers as the reference does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from linearroad.queries import network
from linearroad.queries.history import History

import xstream as xs


def history_of(tolls: Sequence[Any], segments: Sequence[Any]) -> History:
    """The tables that the request operators look things up in, filled row by row."""
    by_xway: dict[int, dict[tuple[int, int], int]] = {}
    for vid, day, xway, spent in tolls:
        by_xway.setdefault(xway, {})[vid, day] = spent
    expenditures = {}
    for xway, spent_by in by_xway.items():
        vids = sorted({vid for vid, _ in spent_by})
        table = np.zeros((len(vids), 69), np.int32)
        for (vid, day), spent in spent_by.items():
            table[vids.index(vid), day - 1] = spent
        expenditures[xway] = (np.array(vids, np.int32), table)
    sums: dict[int, np.ndarray] = {}
    for day, minute, xway, direction, seg, lav, cnt, _ in segments:
        if xway not in sums:
            sums[xway] = np.zeros((7, 2, 1440, 100, 3), np.int32)
        sums[xway][(5 - 1 - day) % 7, direction, minute - 1, seg] += (lav, cnt, 1)
    return History(expenditures, sums, bool(segments))


def run_rows(
    rows: Sequence[tuple[int, ...]],
    history: History,
    rules: str = "paper",
    scheduler: str = "df",
    memory: str = "refcount-lazy",
    chunk: int = 1000,
) -> tuple[list[tuple[int, ...]], list[tuple[int, int]], int]:
    """Sorted answers, sorted rejects as (line, reason number), and implausible speeds."""
    table = np.array([tuple(row) for row in rows], np.int32).reshape(-1, 15)

    def chunks():
        for at in range(0, len(table), chunk):
            part = table[at : at + chunk]
            lines = np.arange(at + 1, at + 1 + len(part), dtype=np.int64)
            rows = xs.SigSeg(part.T.reshape(-1))
            yield rows, xs.SigSeg(lines), at + chunk >= len(table)

    query = xs.Query("linear road")
    built = network.build(query.source(xs.io.iterable(chunks, out=network.RAW)), history, rules)
    sinks = [
        stream.collect()
        for stream in (
            built.notifications, built.balances, built.expenditures, built.travel_times,
            *built.rejects,
        )
    ]  # fmt: skip
    done = query.run(scheduler, memory)
    answers: list[tuple[int, ...]] = []
    for time, vid, lav, toll, alert_vid, alert_seg, _, _ in done[sinks[0]]:
        answers += _rows((0, vid, time, lav, toll))
        answers += _rows((1, time, alert_vid, alert_seg))
    for time, qid, balance in done[sinks[1]]:
        answers += _rows((2, time, time, qid, balance))
    for time, qid, spent in done[sinks[2]]:
        answers += _rows((3, time, qid, spent))
    for time, qid, seconds, toll in done[sinks[3]]:
        answers += _rows((4, time, qid, seconds, toll))
    refused = [np.asarray(seg) for seg in done[sinks[4]]]
    refused += [np.asarray(seg) for seg, _ in done[sinks[5]]]
    rejects = [tuple(row) for part in refused for row in part.reshape(-1, 2).tolist()]
    return sorted(answers), sorted(rejects), sum(n for _, n in done[sinks[5]])


def _rows(fields: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Columns and constants as rows."""
    width = max(len(field) for field in fields if isinstance(field, xs.SigSeg))
    columns = [
        np.asarray(field).tolist() if isinstance(field, xs.SigSeg) else [int(field)] * width
        for field in fields
    ]
    return list(zip(*columns, strict=True))
