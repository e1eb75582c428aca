"""Operators of rule set `brandeis` only: first visits trigger, and the next notification charges.

The validator of 2004 has no trips. A vehicle is notified once for each segment in the whole run,
and the toll that it was quoted is charged at its next notification.
"""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.schema import (
    LANE_SHIFT,
    MEANING,
    REQUEST,
    SEGMENTS,
    TOLL,
    TRIGGER,
    column,
)
from linearroad.tables.visits import first_visit
from xstream.kernels.hashtable import EMPTY, entry_of, with_room

__all__ = ["later_charges", "visits"]


#: A (VID, XWay, Dir), and a bit for each of the 100 segments that it has been in.
VISITOR = np.dtype([("key", "i8"), ("low", "i8"), ("high", "i8")])
#: A VID, the tolls that it was quoted in its last second with notifications, and that second.
QUOTE = np.dtype([("key", "i8"), ("quoted", "i8"), ("second", "i8")])


@xs.kernel(
    state={
        "count": np.zeros(1, np.int64),
        "visitor": np.full(1024, np.array((EMPTY, 0, 0), VISITOR)),
    },
    out={"time": int, "last": bool, **MEANING, "kept": column("int64")},
)
def visits(time, last, vid, key, link, actions, kept, state, out):
    """Sets triggers: the first report of a vehicle from a segment triggers, except on lane 4."""
    count, visitors = state.count, with_room(state.visitor, state.count[0] + len(vid))
    triggers = np.zeros(len(vid), np.int8)
    for i in range(len(vid)):
        if actions[i] >> LANE_SHIFT == 4:
            continue
        whose = (np.int64(key[i]) // SEGMENTS << 32) + vid[i]
        visitor = visitors[entry_of(visitors, whose)]
        if visitor.key == EMPTY:
            visitor.key, visitor.low, visitor.high = whose, 0, 0
            count[0] += 1
        if first_visit(visitor, np.int64(key[i]) % SEGMENTS):
            triggers[i] = TRIGGER
    out.emit_at(0, time, last, vid, key, link, triggers, kept)


@xs.kernel(
    state={
        "count": np.zeros(1, np.int64),
        "quote": np.full(1024, np.array((EMPTY, 0, 0), QUOTE)),
    },
    out={
        "part": int,
        "time": int,
        "request": column(REQUEST),
        "charge_vid": column("int32"),
        "charge": column("int64"),
    },
)
def later_charges(part, time, request, kind, who, amount, state, out):
    """At each notification, charges the toll that was quoted in the one before.

    Notifications of the same second count as one.
    """
    count, quotes = state.count, with_room(state.quote, state.count[0] + len(who))
    charge_vid, charge = np.empty(len(who), np.int32), np.empty(len(who), np.int64)
    charged = 0
    for i in range(len(who)):
        if kind[i] != TOLL:
            continue
        quote = quotes[entry_of(quotes, who[i])]
        if quote.key == EMPTY:
            quote.key, quote.quoted, quote.second = who[i], 0, time
            count[0] += 1
        elif quote.second < time:
            charge_vid[charged], charge[charged] = who[i], quote.quoted
            charged += 1
            quote.quoted, quote.second = 0, time
        quote.quoted += amount[i]
    out.emit_at(0, part, time, request, charge_vid[:charged], charge[:charged])
