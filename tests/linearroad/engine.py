"""Runs the query network over rows in memory and returns its answers as the reference does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from linearroad import network
from linearroad.operators.check import stream_times
from linearroad.rules import rules_named
from linearroad.run.feed import RAW
from linearroad.schema import (
    ALERT,
    ANSWERS,
    BALANCE,
    EXPENDITURE,
    TOLL,
    TRAVEL_TIME,
)
from linearroad.tables.history import History

import xstream as xs


def history_of(tolls: Sequence[Any], segments: Sequence[Any]) -> History:
    """The lookup tables of the request operators, filled row by row."""
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
            last = at + chunk >= len(table)
            yield xs.SigSeg(part.T.reshape(-1)), xs.SigSeg(lines), _end(table) if last else -1

    query = xs.Query("linear road")
    built = network.Network(query, rules_named(rules))
    seconds = built.seconds(query.source(xs.io.iterable(chunks, out=RAW)))
    part = built.part(seconds, history, 0)
    balances = built.balances([part.money]).select(*ANSWERS)
    tables = [stream.collect() for stream in (*part.tables, balances)]
    refused = [seconds.select("reject").collect(), part.reports.select("reject").collect()]
    implausible = part.reports.select("implausible").collect()
    done = query.run(scheduler, memory)
    answers = [row for sink in tables for second in done[sink] for row in answers_of(*second)]
    rejects = [row for sink in refused for seg in done[sink] for row in np.asarray(seg).tolist()]
    return sorted(answers), sorted(rejects), sum(done[implausible])


def _end(table: np.ndarray) -> int:
    """The last second of the stream: the largest Time that a good row has."""
    columns = tuple(table.T)
    return int(stream_times(columns, 0)[-1]) if len(table) else -1


def answers_of(time: int, _: bool, *columns: xs.SigSeg) -> list[tuple[int, ...]]:
    """A table of answers as the reference has them."""
    found = []
    for kind, who, value, amount in zip(*(np.asarray(c).tolist() for c in columns), strict=True):
        found.append(
            {
                TOLL: (TOLL, who, time, value, amount),
                ALERT: (ALERT, time, who, value),
                BALANCE: (BALANCE, time, time, who, amount),
                EXPENDITURE: (EXPENDITURE, time, who, amount),
                TRAVEL_TIME: (TRAVEL_TIME, time, who, value, amount),
            }[kind]
        )
    return found
