"""The tuples between the operators of the query: one per second, columns as SigSegs.

Names, records and packed numbers that several operators share. A *segment key* numbers the segments
of all expressways: `(slot of the expressway * 2 + Dir) * 100 + Seg`, where slots number the
expressways in the order in which they first appear. A *place* is a position in a lane, packed into
an int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import xstream as xs

#: Columns of the input, in the order of docs/linear-road-rules.md, section 1.1, and their numbers.
INPUT_COLUMNS = (
    "type", "time", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "sinit", "send",
    "dow", "tod", "day",
)  # fmt: skip
TYPE, TIME, VID, SPD, XWAY, LANE, DIR, SEG, POS, QID, SINIT, SEND, DOW, TOD, DAY = range(15)
FIELDS = len(INPUT_COLUMNS)
#: Columns of the thesis' nine-field input. A request has other values in the last six: QID, XWay,
#: and for a travel time Minit, Mend, DOW and TOD (docs/linear-road-thesis.md).
THESIS_COLUMNS = ("type", "time", "vid", "speed", "xway", "mile", "offset", "lane", "dir")
THESIS_FIELDS = len(THESIS_COLUMNS)

#: What the fifteen columns of a row mean: the paper's row; one of the thesis, with Mile in `seg`,
#: Offset in `pos`, Minit in `sinit` and Mend in `send`; or the paper's row translated to the
#: thesis, in which a negative type is the negative reason for a reject.
PAPER_ROWS, THESIS_ROWS, TRANSLATED_ROWS = range(3)

#: Types of rows: a position report, and three kinds of requests.
REPORTS, ASKS_BALANCE, ASKS_EXPENDITURE, ASKS_TRAVEL_TIME = 0, 2, 3, 4
#: Kinds of answers, as the output numbers them.
TOLL, ALERT, BALANCE, EXPENDITURE, TRAVEL_TIME = range(5)
KINDS = 5

#: Reasons for a reject, by number. Those after UNKNOWN_TYPE name the first field outside of its
#: domain, spelled as in docs/linear-road-rules.md, section 1.4; any Spd is accepted.
REASONS = (
    "", "field count", "not an integer", "out of int32", "unknown type", "Time", "VID", "XWay",
    "Lane", "Dir", "Seg", "Pos", "QID", "Sinit", "Send", "DOW", "TOD", "Day", "out of order",
    "second report", "line too long", "Mile", "Offset", "Minit", "Mend",
)  # fmt: skip
FIELD_COUNT, NOT_AN_INTEGER, OUT_OF_INT32, UNKNOWN_TYPE = range(1, 5)
OUT_OF_ORDER, SECOND_REPORT, LINE_TOO_LONG = range(18, 21)
OUTSIDE_MILE, OUTSIDE_OFFSET, OUTSIDE_MINIT, OUTSIDE_MEND = range(21, 25)

#: A request: the columns of the input that requests use.
REQUEST_FIELDS = (TYPE, VID, XWAY, QID, SINIT, SEND, DOW, TOD, DAY)
REQUEST = np.dtype([(INPUT_COLUMNS[field], "i4") for field in REQUEST_FIELDS])
#: The line of a row that is rejected, and why (`REASONS`).
REJECT = np.dtype([("origin", "i8"), ("reason", "i8")])
#: A vehicle that stands at a place until some second, or stays there from now on (STAYS).
STOP = np.dtype([("place", "i8"), ("vid", "i8"), ("until", "i8")])
STAYS = 2**40
#: A segment and a minute in which an accident was there.
MARK = np.dtype([("key", "i8"), ("minute", "i8")])
#: The statistics of a segment at the start of a minute.
SEGMENT = np.dtype([("lav", "i4"), ("cars", "i4")])
LANE_SHIFT = 4  # of the lane in `actions`

SEGMENTS = 100  # per direction
FEET_A_SEGMENT = 5280

#: What a report does, as bits of `actions`: sends a notification, leaves a segment behind, starts
#: a trip.
TRIGGER, CROSSED, FIRST = 1, 2, 4
#: And it is the first of its vehicle from the segment in this minute.
FRESH = 8

#: Instead of an index in `kept`: tolls are kept by the number of the trip.
BY_TRIP = -1

#: A value that is not a minute of the stream.
NO_MINUTE = -(2**40)


def column(dtype: str | np.dtype[Any]) -> xs.Out:
    """A column of a second: rows are numbered from 0."""
    return xs.Out(np.dtype(dtype), start="given")


#: What the reports of a second mean, by column: the segment key, the index of the trip's last
#: report (`link`, see `vehicles`), and what the report does (`actions`, with the lane in the upper
#: bits).
MEANING = {
    "vid": column("int32"),
    "key": column("int32"),
    "link": column("int32"),
    "actions": column("int8"),
}

#: The answers to the rows of one second: kind, VID or QID, LAV or accident segment or ResultTime or
#: travel time, toll or balance. `last`: no later second of the rows that were read will follow.
ANSWERS = {
    "time": int,
    "last": bool,
    "kind": column("int8"),
    "who": column("int32"),
    "value": column("int32"),
    "amount": column("int64"),
}
