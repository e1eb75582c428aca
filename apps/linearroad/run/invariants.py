"""Checks of a saved state before compiled kernels use it.

Kernels do not check bounds. They rely on invariants of their state: a count is at most the length
of its array, a hash table has an empty entry where a search ends, a batch lies within the reports.
A file can contain anything, so everything that a kernel uses as an index, or that a search depends
on, is checked. A state that passes may be wrong, but no kernel reads or writes out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.operators.accidents import ENTRIES, LAST_SECOND, PAIRS, accidents
from linearroad.operators.accounts import accounts
from linearroad.operators.check import POS_MASK
from linearroad.operators.meanings import SEG_AT
from linearroad.operators.statistics import MINUTES, statistics
from linearroad.operators.tolls import tolls
from linearroad.operators.trips import NEVER, ODDS, SLOTS
from linearroad.operators.vehicles import vehicles
from linearroad.schema import FEET_A_SEGMENT, NO_MINUTE, SEGMENTS
from linearroad.tables.batches import FATE_AT, OVER, RING, SEGMENT2, SEGMENT2_AT
from linearroad.tables.ledger import PAGE, PAGES, WIDES
from xstream.kernels.hashtable import EMPTY

__all__ = ["Limits", "check_state"]

Arrays = dict[str, NDArray[Any]]
_FEET = SEGMENTS * FEET_A_SEGMENT
_LANES_AND_FEET = 23  # bits of a place below its direction


@dataclass(frozen=True)
class Limits:
    """The largest numbers that a state of this traffic can contain."""

    minute: int  # the state was saved at the end of this minute
    vehicles: int
    expressways: int


class _Violation(Exception):
    """A sentence about an invariant that does not hold."""


def _require(holds: object, what: str) -> None:
    if not holds:
        raise _Violation(what)


def check_state(kernel: str, arrays: Arrays, limits: Limits) -> str | None:
    """The first fault in the arrays of a kernel ("vehicles", ...); None if there is none."""
    try:
        _check_types(kernel, arrays)
        _CHECKS[kernel](arrays, limits)
    except _Violation as violation:
        return str(violation)
    return None


def _check_types(kernel: str, arrays: Arrays) -> None:
    names, states = _KERNELS[kernel].state_names, _KERNELS[kernel].states
    declared = dict(zip(names or (), states, strict=True))
    _require(set(arrays) == set(declared), f"it holds other arrays than {', '.join(declared)}")
    for name, array in arrays.items():
        wanted = declared[name].dtype
        _require(array.dtype == wanted, f"{name!r} is {array.dtype}, not {wanted}")
        _require(array.ndim == 1, f"{name!r} has {array.ndim} dimensions, not 1")
        _require(array.flags.c_contiguous and len(array), f"{name!r} is empty")


def _equally_long(arrays: Arrays, *names: str, length: int | None = None) -> int:
    """Check that arrays have the same length; returns it."""
    size = len(arrays[names[0]]) if length is None else length
    for name in names:
        _require(len(arrays[name]) == size, f"{name!r} has {len(arrays[name])} entries, not {size}")
    return size


def _within(values: NDArray[Any], low: int, high: int, what: str) -> None:
    """Check that every value is from `low` to below `high`."""
    _require(((values >= low) & (values < high)).all(), f"{what} is outside {low} to {high - 1}")


def _entries(table: NDArray[Any], count: int, what: str) -> Any:
    """The used entries of a hash table; checks their count, and that one entry is empty."""
    taken = table[(table["key"] if table.dtype.names else table) != EMPTY]
    _require(len(taken) == count, f"{what} are counted wrongly")
    _require(len(taken) < len(table), f"the table of {what} has no empty entry")
    return taken


def _distinct(values: NDArray[Any], what: str) -> None:
    _require(len(np.unique(values)) == len(values), f"{what} occurs twice")


def _seconds(values: NDArray[Any], never: int, limits: Limits, what: str) -> None:
    known = values[values != never]
    _within(known, 0, 60 * limits.minute, what)


def _places(values: NDArray[Any], limits: Limits) -> None:
    """Check positions in a lane of a direction, as `standing_place` packs them."""
    _within(values, 0, 2 * limits.expressways << _LANES_AND_FEET, "a place")
    _within(values & POS_MASK, 0, _FEET, "a position")


# -- one for each kernel -------------------------------------------------------------------------


def _check_vehicles(arrays: Arrays, limits: Limits) -> None:
    _equally_long(arrays, "number", length=5)
    _equally_long(arrays, "base", "count", "second", "ascending", "built", length=RING)
    size = _equally_long(arrays, "vid", "where", "bits")
    slots = _check_roads(arrays, limits)
    base, count, second = arrays["base"], arrays["count"], arrays["second"]
    _within(count, 0, size + 1, "a batch's length")
    _within(base, 0, size + 1, "a batch's beginning")
    _require((base + count <= size).all(), "a batch ends behind the last report")
    _seconds(second, NEVER, limits, "a batch's second")
    kept = np.flatnonzero(second != NEVER)
    _require((second[kept] % RING == kept).all(), "a batch is at the place of another second")
    _require(not count[second == NEVER].any(), "a batch without a second has reports")
    _entries(arrays["odd"], arrays["number"][ODDS], "speeds that do not fit")
    _check_batches(arrays, slots, kept, limits)


def _check_roads(arrays: Arrays, limits: Limits) -> int:
    """Check the slots of expressways; returns their number."""
    known = _entries(arrays["xway"], arrays["number"][SLOTS], "expressways")
    slots = len(known)
    _within(known["key"], 0, limits.expressways, "an expressway")
    _distinct(known["key"], "an expressway")
    _within(known["slot"], 0, slots, "an expressway's number")
    _distinct(known["slot"], "an expressway's number")
    return slots


def _check_batches(arrays: Arrays, slots: int, kept: NDArray[Any], limits: Limits) -> None:
    """Check the reports in batches, and that batches do not overlap."""
    base, count = arrays["base"][kept], arrays["count"][kept]
    used = np.flatnonzero(count)
    order = used[np.argsort(base[used])]
    ends = (base + count)[order]
    _require((ends[:-1] <= base[order][1:]).all(), "two batches overlap")
    several = slots > 1
    if several:
        size = len(arrays["vid"])
        _require(len(arrays["slot"]) >= size, f"'slot' has {len(arrays['slot'])} entries")
    for i, batch in enumerate(kept):
        rows = slice(base[i], base[i] + count[i])
        vid, where, bits = (arrays[name][rows] for name in ("vid", "where", "bits"))
        slot = arrays["slot"][rows] if several else np.zeros(len(vid), np.int32)
        _within(slot, 0, max(slots, 1), "an expressway's number")
        _within(vid, 0, limits.vehicles, "a VID")
        _within(where, 0, SEGMENTS << SEG_AT, "a segment")
        _within(where & POS_MASK, 0, _FEET, "a position")
        _within(bits, 0, (OVER + 1) << FATE_AT, "a report's bits")
        _within(((bits >> SEGMENT2_AT) & SEGMENT2) >> 1, 0, SEGMENTS, "a segment")
        who = (slot.astype(np.int64) << 32) + vid
        if arrays["ascending"][batch]:
            _require((who[1:] > who[:-1]).all(), "a batch is not in ascending order")
        else:
            _distinct(who, "a vehicle of a batch")


def _check_accidents(arrays: Arrays, limits: Limits) -> None:
    _equally_long(arrays, "number", length=3)
    number, standing = arrays["number"], arrays["standing"]
    taken = _entries(standing, number[ENTRIES], "standing vehicles")
    _places(taken["key"], limits)
    _distinct(taken["key"], "a place")
    _within(taken["cars"], 1, limits.vehicles + 1, "a number of cars")
    _within(number[PAIRS], 0, len(arrays["pairs"]) + 1, "the number of accidents")
    _places(arrays["pairs"][: number[PAIRS]], limits)
    _seconds(number[LAST_SECOND : LAST_SECOND + 1], NO_MINUTE, limits, "the last second")
    _require(
        number[LAST_SECOND] != NO_MINUTE or not number[PAIRS], "accidents are before any second"
    )


def _check_statistics(arrays: Arrays, limits: Limits) -> None:
    _check_minute(arrays, limits)
    size = _equally_long(arrays, "total", "amount", "vehicles")
    _require(size <= _most_segments(limits), f"'total' has {size} entries, which is too many")
    _equally_long(arrays, "history", "weight", length=MINUTES * size)
    for name in ("total", "history"):
        _require(np.isfinite(arrays[name]).all(), f"{name!r} is not all numbers")


def _check_tolls(arrays: Arrays, limits: Limits) -> None:
    _check_minute(arrays, limits)
    size = _equally_long(arrays, "lav", "cars", "alert", "above", "last", "before")
    _require(size % SEGMENTS == 0, f"'lav' has {size} entries, which are no whole directions")
    _require(size <= _most_segments(limits), f"'lav' has {size} entries, which is too many")
    _within(arrays["alert"], -1, SEGMENTS, "a segment")


def _check_minute(arrays: Arrays, limits: Limits) -> None:
    _equally_long(arrays, "minute", length=1)
    known = arrays["minute"][arrays["minute"] != NO_MINUTE]
    _within(known, 0, limits.minute, "the minute")


def _most_segments(limits: Limits) -> int:
    """The longest that a table by segment can be; it at most doubles when it grows."""
    return max(400 * limits.expressways, 400)


def _check_accounts(arrays: Arrays, limits: Limits) -> None:
    _equally_long(arrays, "used", length=2)
    _equally_long(arrays, "progress", length=4)
    _require(not arrays["progress"][1:].any(), "charges or requests are not settled")
    _within(arrays["progress"][:1], -1, 60 * limits.minute, "the second")
    taken = _entries(arrays["entry"], arrays["used"][PAGES], "pages")
    _entries(arrays["wide"], arrays["used"][WIDES], "balances that do not fit")
    pages = len(taken)
    _require(pages * PAGE <= len(arrays["balance"]), "there are fewer balances than pages")
    _within(taken["key"], 0, limits.vehicles // PAGE + 1, "a page's number")
    _distinct(taken["key"], "a page's number")
    _within(taken["page"], 0, pages, "a page")
    _distinct(taken["page"], "a page")


_KERNELS = {
    "vehicles": vehicles,
    "accidents": accidents,
    "segment statistics": statistics,
    "tolls": tolls,
    "accounts": accounts,
}
_CHECKS: dict[str, Callable[[Arrays, Limits], None]] = {
    "vehicles": _check_vehicles,
    "accidents": _check_accidents,
    "segment statistics": _check_statistics,
    "tolls": _check_tolls,
    "accounts": _check_accounts,
}
