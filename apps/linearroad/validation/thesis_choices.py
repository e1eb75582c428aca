"""Which tolls another system may quote: those of any second of the last 60 (thesis, 3.3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from linearroad.validation.tables import Frame, Workshop

__all__ = ["with_choices"]

AGE_S = 60
WINDOW_S, RECENT_S = 300, 60
FEW = 150  # vehicles; a toll is asked for more
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
    times = asked["time"].to_numpy().astype(np.int64)
    seconds = times[:, None] - np.arange(AGE_S + 1)
    many, total, vehicles = _known_at(seconds, known)
    speed = np.where(many > 0, total // np.maximum(many, 1), -1)
    freed = asked["freed"].to_numpy(zero_copy_only=False).astype(bool)
    tolled = (many > 0) & (total < 40 * many) & (vehicles > FEW) & ~freed[:, None]
    above = np.where(tolled, vehicles - FEW, 0)
    found = []
    for speeds, beyond in zip(speed.tolist(), above.tolist(), strict=True):
        pairs = sorted(set(zip(speeds, beyond, strict=True)))
        found.append([{"speed": value, "base": base_toll * n**2} for value, n in pairs])
    pair = pa.struct([("speed", pa.int64()), ("base", pa.int64())])
    columns = [asked[name].cast(pa.int32()) for name in ("vid", "time", "xway")]
    return pa.Table.from_arrays(
        [*columns, pa.array(found, pa.list_(pair))], names=["vid", "time", "xway", "choices"]
    )


def _known_at(seconds: Any, known: Any) -> tuple[Any, Any, Any]:
    """Reports of the last 300 s, the sum of their speeds, and vehicles, at each of the seconds."""
    time, vid, spd = (known[name].to_numpy().astype(np.int64) for name in ("time", "vid", "spd"))
    order = np.argsort(time, kind="stable")
    ordered, sums = time[order], np.concatenate(([0], np.cumsum(spd[order])))
    first = np.searchsorted(ordered, seconds - WINDOW_S)
    last = np.searchsorted(ordered, seconds)
    # A report counts its vehicle from the next second on, for 60 s or until its next report.
    order = np.lexsort((time, vid))
    time, vid = time[order], vid[order]
    until = time + RECENT_S
    again = vid[1:] == vid[:-1]
    until[:-1] = np.where(again, np.minimum(until[:-1], time[1:]), until[:-1])
    ended = np.searchsorted(np.sort(until), seconds)
    return last - first, sums[last] - sums[first], last - ended
