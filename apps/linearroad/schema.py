"""What travels between the operators of the query: one tuple a second, columns as SigSegs.

Names and packings that several operators share. A *segment key* numbers the segments of all
expressways: `(slot of the expressway * 2 + Dir) * 100 + Seg`, where slots number the expressways
in the order in which they first appear. A *place* is a position in a lane, packed into an int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import xstream as xs

#: Reasons for a reject, by number; those after UNKNOWN_TYPE name the first field outside its
#: domain, spelled as in docs/linear-road-rules.md, section 1.4.
REASONS = (
    "", "field count", "not an integer", "out of int32", "unknown type", "Time", "VID", "XWay",
    "Lane", "Dir", "Seg", "Pos", "QID", "Sinit", "Send", "DOW", "TOD", "Day", "out of order",
    "second report", "line too long",
)  # fmt: skip
UNKNOWN_TYPE = 4
TIME, VID, XWAY, LANE, DIR, SEG, POS, QID, SINIT, SEND, DOW, TOD, DAY = range(5, 18)
OUT_OF_ORDER = 18
SECOND_REPORT = 19
LINE_TOO_LONG = 20

#: Columns of the input, in the order of docs/linear-road-rules.md, section 1.1.
INPUT_COLUMNS = (
    "type", "time", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "sinit", "send",
    "dow", "tod", "day",
)  # fmt: skip

#: Types of requests, as the input numbers them.
ASKS_BALANCE, ASKS_EXPENDITURE, ASKS_TRAVEL_TIME = 2, 3, 4
#: Kinds of answers, as the output numbers them.
TOLL, ALERT, BALANCE, EXPENDITURE, TRAVEL_TIME = range(5)
KINDS = 5

#: Rows of columns that have more than one field.
REQUEST = np.dtype(
    [(name, "i4") for name in ("type", "vid", "xway", "qid", "sinit", "send", "dow", "tod", "day")]
)
#: Where a row that is refused comes from, and why (`REASONS`).
REJECT = np.dtype([("origin", "i8"), ("reason", "i8")])
#: What a report means: where its trip's last report was kept (`vehicles`), what it does (`flags`,
#: with the lane in the upper bits), whether it is the first of its vehicle and minute from the
#: segment (`fresh`), and what it adds to the vehicle's average there (`gain`).
REPORT = np.dtype(
    [("vid", "i4"), ("key", "i4"), ("link", "i4"), ("flags", "i2"), ("fresh", "i2"), ("gain", "f8")]
)
#: A vehicle stands at a place until some second.
STOP = np.dtype([("place", "i8"), ("vid", "i8"), ("until", "i8")])
#: A segment and a minute in which an accident was there.
MARK = np.dtype([("key", "i8"), ("minute", "i8")])
#: What is known of a segment at the start of a minute.
SEGMENT = np.dtype([("lav", "i4"), ("cars", "i4")])
LANE_SHIFT = 4  # of the lane in `flags`

SEGMENTS = 100  # a direction
FEET_A_SEGMENT = 5280

#: What a report does, as bits: sends a notification, leaves a segment behind, starts a trip.
TRIGGER, CROSSED, FIRST = 1, 2, 4

#: Instead of a place: what is kept of trips is kept by their numbers.
BY_TRIP = -1

#: Never a minute of the stream.
NO_MINUTE = -(2**40)


def column(dtype: str | np.dtype[Any]) -> xs.Out:
    """A column of a second: rows by index, always counted from 0."""
    return xs.Out(np.dtype(dtype), start="given")


#: The answers to one second's rows: kind, VID or QID, LAV or accident segment or travel time, toll
#: or balance. `last`: no other second of the rows that were read will follow.
ANSWERS = {
    "time": int,
    "last": bool,
    "kind": column("int8"),
    "who": column("int32"),
    "value": column("int32"),
    "amount": column("int64"),
}
