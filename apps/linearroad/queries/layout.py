"""What travels between the operators of the query: one tuple a second, columns as SigSegs.

Names and packings that several operators share. A *segment key* numbers the segments of all
expressways: `(slot of the expressway * 2 + Dir) * 100 + Seg`, where slots number the expressways
in the order in which they first appear. A *place* is a position in a lane, packed into an int64.
"""

from __future__ import annotations

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

#: A request as it travels: so many int32 a row.
REQUEST_FIELDS = ("type", "vid", "xway", "qid", "sinit", "send", "dow", "tod", "day")
REQUEST_WIDTH = len(REQUEST_FIELDS)

SEGMENTS = 100  # a direction
FEET_A_SEGMENT = 5280

#: What a report does, as bits: sends a notification, leaves a segment behind, starts a trip.
TRIGGER, CROSSED, FIRST = 1, 2, 4

#: Instead of a place: what is kept of trips is kept by their numbers.
BY_TRIP = -1

#: Never a minute of the stream.
NO_MINUTE = -(2**40)


def column(dtype: str) -> xs.Out:
    """A column of a second: rows by index, always counted from 0."""
    return xs.Out(np.dtype(dtype), start="given")
