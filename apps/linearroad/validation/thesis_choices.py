"""Which tolls another system may quote: those of any second of the last 60 (thesis, 3.3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from linearroad.validation.tables import Frame, Workshop

__all__ = ["with_accepted", "with_choices"]

AGE_S = 60
WINDOW_S, RECENT_S = 300, 60
FEW = 150  # vehicles; a toll is asked for more
CHOICES = "vid int, time int, xway int, choices array<struct<speed bigint, base bigint>>"
#: Entries with the notification that was sent for each, and whether it is accepted.
ACCEPTED = pa.schema(
    [
        *((name, pa.int32()) for name in ("vid", "time", "xway")),
        *((name, pa.bool_()) for name in ("first", "credited")),
        *((name, pa.int64()) for name in ("speed", "base", "sent_speed", "sent_toll")),
        *((name, pa.bool_()) for name in ("full", "half")),
    ]
)
SEGMENT = ("xway", "dir", "mile")
AT_ONCE = 50_000  # entries that are compared with all seconds at once
_SQL = {"int32": "int", "int64": "bigint", "bool": "boolean"}
_DDL = ", ".join(f"{field.name} {_SQL[str(field.type)]}" for field in ACCEPTED)
NOT_SENT = -(2**62)  # a speed that no segment has


def with_choices(shop: Workshop, events: Frame, reports: Frame, base_toll: int) -> Frame:
    """The events, with all speeds and tolls before the discount that are accepted (`choices`)."""
    entered = events.where("entered").select("xway", "dir", "mile", "vid", "time", "freed")
    seen = reports.select("xway", "dir", "mile", "vid", "time", "spd")
    choices = (
        entered.groupBy(*SEGMENT)
        .cogroup(seen.groupBy(*SEGMENT))
        .applyInArrow(lambda asked, known: _choices(asked, known, base_toll), schema=CHOICES)
    )
    return shop.table(
        "SELECT * FROM {events} LEFT JOIN {choices} USING (vid, time, xway)",
        events=events,
        choices=shop.keep(choices),
    )


def with_accepted(shop: Workshop, entries: Frame, reports: Frame, base_toll: int) -> Frame:
    """Entries of segments, each with the notification that was sent for it.

    `full` and `half` say whether its speed and toll are those of any second of the last 60, the
    toll without or with the discount.
    """
    seen = reports.select("xway", "dir", "mile", "vid", "time", "spd")
    return (
        entries.groupBy(*SEGMENT)
        .cogroup(seen.groupBy(*SEGMENT))
        .applyInArrow(lambda asked, known: _accepted(asked, known, base_toll), schema=_DDL)
    )


def _choices(asked: Any, known: Any, base_toll: int) -> Any:
    """The choices of every vehicle that enters one segment."""
    speeds, bases = (values.tolist() for values in _candidates(asked, known, base_toll))
    found = []
    for speed, base in zip(speeds, bases, strict=True):
        pairs = sorted(set(zip(speed, base, strict=True)))
        found.append([{"speed": value, "base": toll} for value, toll in pairs])
    pair = pa.struct([("speed", pa.int64()), ("base", pa.int64())])
    columns = [asked[name].cast(pa.int32()) for name in ("vid", "time", "xway")]
    return pa.Table.from_arrays(
        [*columns, pa.array(found, pa.list_(pair))], names=["vid", "time", "xway", "choices"]
    )


def _accepted(asked: Any, known: Any, base_toll: int) -> Any:
    """The columns of ACCEPTED for every vehicle that enters one segment."""
    parts = [ACCEPTED.empty_table()]
    parts += [
        _compared(asked.slice(start, AT_ONCE), known, base_toll)
        for start in range(0, len(asked), AT_ONCE)
    ]
    return pa.concat_tables(parts)


def _compared(asked: Any, known: Any, base_toll: int) -> Any:
    speeds, bases = _candidates(asked, known, base_toll)
    told = {
        name: asked[name].fill_null(NOT_SENT).to_numpy() for name in ("sent_speed", "sent_toll")
    }
    same = speeds == told["sent_speed"][:, None]
    toll = told["sent_toll"][:, None]
    found = {
        **{name: asked[name] for name in ACCEPTED.names if name in asked.column_names},
        **told,
        "full": (same & (bases == toll)).any(axis=1),
        "half": (same & (bases // 2 == toll)).any(axis=1),
    }
    return pa.table({name: found[name] for name in ACCEPTED.names}, schema=ACCEPTED)


def _candidates(asked: Any, known: Any, base_toll: int) -> tuple[Any, Any]:
    """Speed, and toll before the discount, at each of the last 60 seconds: a row for each entry."""
    times = asked["time"].to_numpy().astype(np.int64)
    seconds = _seconds_before(times)
    many, total, vehicles = _known_at(seconds, known)
    speed = np.where(many > 0, total // np.maximum(many, 1), -1)
    tolled = (many > 0) & (total < 40 * many) & (vehicles > FEW)
    base = np.where(tolled, base_toll * (vehicles - FEW) ** 2, 0)
    # The seconds before an entry lie next to each other.
    places = np.searchsorted(seconds, times)[:, None] - np.arange(AGE_S + 1)
    freed = asked["freed"].to_numpy(zero_copy_only=False).astype(bool)
    return speed[places], np.where(freed[:, None], 0, base[places])


def _seconds_before(times: Any) -> Any:
    """Each second of [t - 60, t] of any of the times once, in order.

    >>> _seconds_before(np.array([100, 30, 31]))[[0, 1, -62, -61, -1]].tolist()
    [-30, -29, 31, 40, 100]
    """
    distinct = np.unique(times)
    lengths = np.minimum(np.diff(distinct, prepend=distinct[:1] - AGE_S - 1), AGE_S + 1)
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(distinct - lengths + 1 - starts, lengths)


def _known_at(seconds: Any, known: Any) -> tuple[Any, Any, Any]:
    """Reports of the last 300 s, the sum of their speeds, and vehicles, at each of the seconds.

    Seconds and results are arrays of one dimension.
    """
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
