"""Following vehicles by the paper's rules with numpy, one partition of the vehicles at a time.

Sorting twelve million reports by vehicle, and looking at the neighbours of each, takes a column
engine seconds and Spark's windows a minute. Every partition has all reports of its vehicles. It
yields three kinds of rows (`what`): the segments entered, the reports of standing vehicles, and
sums for the statistics of a segment and minute, which are added up over all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["COUNTED", "ENTERED", "SCHEMA", "STANDING", "follow_paper"]

ENTERED, STANDING, COUNTED = range(3)
#: `pos` and `until` are those of a standing vehicle; `time` of a sum is the minute.
SCHEMA = """what int, vid int, xway int, dir int, seg int, lane int, time int, first boolean,
    pos int, until int, vehicles bigint, average double, speed bigint, reports bigint"""
_ARROW = pa.schema(
    [
        ("what", pa.int32()), ("vid", pa.int32()), ("xway", pa.int32()), ("dir", pa.int32()),
        ("seg", pa.int32()), ("lane", pa.int32()), ("time", pa.int32()), ("first", pa.bool_()),
        ("pos", pa.int32()), ("until", pa.int32()), ("vehicles", pa.int64()),
        ("average", pa.float64()), ("speed", pa.int64()), ("reports", pa.int64()),
    ]
)  # fmt: skip
PERIOD_S = 30
CELLS = 200  # of both directions

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Reports(NamedTuple):
    """Reports ordered by vehicle and expressway (`key`), then by Time."""

    key: Ints
    vid: Ints
    xway: Ints
    time: Ints
    spd: Ints
    lane: Ints
    dir: Ints
    seg: Ints
    pos: Ints

    def only(self, index: Any) -> Reports:
        """Some of them."""
        return Reports(*(column[index] for column in self))


def in_order(table: Any) -> Reports:
    """The reports of a partition, without those that follow another of the same second."""
    column = {name: table[name].to_numpy() for name in table.column_names}
    key = _numbered(column["xway"])[1] << 31 | column["vid"]
    time = column["time"].astype(np.int64)
    order = np.argsort(time, kind="stable")
    order = order[np.argsort(key[order], kind="stable")]
    again = _like_last(key[order]) & _like_last(time[order])
    if again.any():  # of two reports in one second the first in the input counts
        order = np.lexsort((column["place"], time, key))
        again = _like_last(key[order]) & _like_last(time[order])
        order = order[~again]
    names = Reports._fields[3:]
    rest = (time[order] if name == "time" else column[name][order] for name in names)
    return Reports(key[order], column["vid"][order], column["xway"][order], *rest)


def _numbered(xways: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The expressways that occur, and the number of each row's among them; mostly there is one."""
    if xways.min() == xways.max():
        return xways[:1], np.zeros(len(xways), np.int64)
    slots, slot = np.unique(xways, return_inverse=True)
    return slots, slot.astype(np.int64)


def _like_last(values: NDArray[Any]) -> Flags:
    same = np.zeros(len(values), bool)
    same[1:] = values[1:] == values[:-1]
    return same


def _before(flags: Flags, by: int) -> Flags:
    """The flags of the report `by` places before."""
    moved = np.zeros(len(flags), bool)
    moved[by:] = flags[: len(flags) - by]
    return moved


def _entered(one: Reports, first: Flags) -> Any:
    enters = np.flatnonzero(first | ~_like_last(one.seg))
    some = one.only(enters)
    return _table(
        len(enters), what=ENTERED, vid=some.vid, xway=some.xway, dir=some.dir, seg=some.seg,
        lane=some.lane, time=some.time, first=first[enters],
    )  # fmt: skip


def _standing(one: Reports, first: Flags) -> Any:
    equal = ~first
    for column in (one.lane, one.pos, one.dir):
        equal &= _like_last(column)
    stands = equal & _before(equal, 1) & _before(equal, 2) & (one.lane >= 1) & (one.lane <= 3)
    places = np.flatnonzero(stands)
    until = one.time[places] + PERIOD_S
    follow = np.minimum(places + 1, len(one.key) - 1)
    has_next = (places + 1 < len(one.key)) & (one.key[follow] == one.key[places])
    until = np.where(has_next, np.minimum(until, one.time[follow]), until)
    some = one.only(places)
    return _table(
        len(places), what=STANDING, vid=some.vid, xway=some.xway, dir=some.dir, lane=some.lane,
        time=some.time, pos=some.pos, until=until,
    )  # fmt: skip


def _counted(one: Reports) -> Any:
    """For each segment and minute: vehicles, the sum of their mean speeds, speeds and reports."""
    cell, minute = one.dir * 100 + one.seg, one.time // 60 + 1
    goes_on = _like_last(one.key) & _like_last(minute)
    begins = np.flatnonzero(~(goes_on & _like_last(cell)))
    speed = np.add.reduceat(one.spd.astype(np.int64), begins)
    reports = np.diff(np.append(begins, len(one.key)))
    stay = np.cumsum(~goes_on)[begins]  # numbers the minutes of each vehicle
    visits = np.bincount(stay)
    back = visits[stay] > 2  # a vehicle may have come back to a segment within the minute
    if back.any():
        begins, speed, reports = _joined(begins, speed, reports, stay * CELLS + cell[begins], back)
    slots, slot = _numbered(one.xway[begins])
    places, where = np.unique(
        (slot << 40) + minute[begins] * CELLS + cell[begins], return_inverse=True
    )
    sums = [
        np.bincount(where, weights, len(places)) for weights in (speed / reports, speed, reports)
    ]
    in_slot = places & ((1 << 40) - 1)
    return _table(
        len(places), what=COUNTED, xway=slots[places >> 40], dir=in_slot % CELLS // 100,
        seg=in_slot % 100, time=in_slot // CELLS, vehicles=np.bincount(where, None, len(places)),
        average=sums[0], speed=sums[1].astype(np.int64), reports=sums[2].astype(np.int64),
    )  # fmt: skip


def _joined(begins: Ints, speed: Ints, reports: Ints, code: Ints, back: Flags) -> tuple[Ints, ...]:
    """Stays of a vehicle in a segment in one minute as one, where there may be several."""
    _, first, which = np.unique(code[back], return_index=True, return_inverse=True)
    joined = [np.bincount(which, weights[back]).astype(np.int64) for weights in (speed, reports)]
    kept = ~back
    return (
        np.concatenate((begins[kept], begins[back][first])),
        np.concatenate((speed[kept], joined[0])),
        np.concatenate((reports[kept], joined[1])),
    )


def _table(rows: int, **columns: Any) -> Any:
    """A table of rows; columns that are not given are null."""
    made = []
    for field in _ARROW:
        value = columns.get(field.name)
        if value is None:
            made.append(pa.nulls(rows, field.type))
        elif np.isscalar(value):
            made.append(pa.array(np.full(rows, value), field.type))
        else:
            made.append(pa.array(value).cast(field.type))
    return pa.table(made, schema=_ARROW)


def follow_paper(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows of `SCHEMA` for all reports of some vehicles, as Arrow batches."""
    given = list(batches)
    if not given:
        return
    table = pa.Table.from_batches(given)
    given.clear()
    if not table.num_rows:
        return
    one = in_order(table)
    first = ~_like_last(one.key)
    first[1:] |= np.diff(one.time) != PERIOD_S
    for found in (_entered(one, first), _standing(one, first), _counted(one)):
        yield from found.to_batches(max_chunksize=1 << 17)
