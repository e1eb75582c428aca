"""Which tolls another system may quote: those of any second of the last 60 (thesis, 3.3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from linearroad.validation.tables import Frame, Workshop

__all__ = ["with_choices"]

AGE_S = 60
WINDOW_S, RECENT_S = 300, 60
CHOICES = "vid int, time int, xway int, choices array<struct<speed bigint, base bigint>>"


def with_choices(shop: Workshop, events: Frame, reports: Frame, base_toll: int) -> Frame:
    """The events, with all speeds and tolls before the discount that are accepted (`choices`)."""
    entered = events.where("entered").select("xway", "dir", "mile", "vid", "time", "freed")
    seen = reports.select("xway", "dir", "mile", "vid", "time", "spd")
    segment = ("xway", "dir", "mile")
    choices = (
        entered.groupBy(*segment)
        .cogroup(seen.groupBy(*segment))
        .applyInArrow(lambda asked, known: _choices(asked, known, base_toll), schema=CHOICES)
    )
    return shop.table(
        "SELECT * FROM {events} LEFT JOIN {choices} USING (vid, time, xway)",
        events=events,
        choices=shop.keep(choices),
    )


def _choices(asked: Any, known: Any, base_toll: int) -> Any:
    """The choices of every vehicle that enters one segment."""
    time, vid, spd = (known[name].to_numpy().astype(np.int64) for name in ("time", "vid", "spd"))
    begin, end = int(time.min()) - WINDOW_S - 1, int(time.max()) + AGE_S + 2
    speeds = np.bincount(time - begin, spd, end - begin)
    speed = np.concatenate(([0], np.cumsum(speeds))).astype(np.int64)
    reports = np.concatenate(([0], np.cumsum(np.bincount(time - begin, None, end - begin))))
    # A report counts its vehicle from the next second on, for 60 s or until its next report.
    order = np.lexsort((time, vid))
    time, vid = time[order], vid[order]
    until = time + RECENT_S
    again = vid[1:] == vid[:-1]
    until[:-1] = np.where(again, np.minimum(until[:-1], time[1:]), until[:-1])
    change = np.zeros(end - begin + 1, np.int64)
    np.add.at(change, time + 1 - begin, 1)
    np.add.at(change, until + 1 - begin, -1)
    vehicles = np.cumsum(change)
    found = []
    for row in asked.select(["vid", "time", "xway", "freed"]).to_pylist():
        pairs = set()
        for s in range(max(row["time"] - AGE_S, begin + WINDOW_S), row["time"] + 1):
            at = s - begin
            many = int(reports[at] - reports[at - WINDOW_S])
            total = int(speed[at] - speed[at - WINDOW_S])
            above = int(vehicles[at]) - 150
            tolled = many and total < 40 * many and above > 0 and not row["freed"]
            pairs.add((total // many if many else -1, base_toll * above**2 if tolled else 0))
        told = [{"speed": value, "base": base} for value, base in sorted(pairs)]
        found.append({**{name: row[name] for name in ("vid", "time", "xway")}, "choices": told})
    pair = pa.struct([("speed", pa.int64()), ("base", pa.int64())])
    schema = pa.schema(
        [
            ("vid", pa.int32()),
            ("time", pa.int32()),
            ("xway", pa.int32()),
            ("choices", pa.list_(pair)),
        ]
    )
    return pa.Table.from_pylist(found, schema)
