"""Rows as lines and as tuples of the thesis, lines and tuples as answers: compiled code."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.schema import (
    ALERT,
    ASKS_BALANCE,
    BALANCE,
    DIR,
    DOW,
    EXPENDITURE,
    FIELDS,
    LANE,
    POS,
    QID,
    REPORTS,
    SEG,
    SEGMENTS,
    SEND,
    SINIT,
    SPD,
    TIME,
    TOD,
    TOLL,
    TRAVEL_TIME,
    TYPE,
    VID,
    XWAY,
)
from xstream.kernels.decimals import put, put_thousandths

__all__ = [
    "ANSWER_FIELDS",
    "TUPLE_FIELDS",
    "answers_of_tuples",
    "format_arrivals",
    "format_rows",
    "of_tuples",
    "parse_answers",
    "shift_rows",
    "to_tuples",
    "tuples_of_answers",
]

NEWLINE, RETURN, COMMA, MINUS, ZERO, NINE = 10, 13, 44, 45, 48, 57
#: The most fields of an answer, and by kind: how many there are, and which of them is the Emit,
#: which is the time, the vehicle or request, the value and the amount (-1: there is none).
MOST_FIELDS = 6
_LAYOUT = np.array(
    [
        # fields, emit, time, who, value, amount
        [6, 3, 2, 1, 4, 5],  # toll notification: 0, VID, Time, Emit, Lav, Toll
        [5, 2, 1, 3, 4, -1],  # accident alert: 1, Time, Emit, VID, Seg
        [6, 2, 1, 4, 3, 5],  # balance: 2, Time, Emit, ResultTime, QID, Bal
        [5, 2, 1, 3, -1, 4],  # expenditure: 3, Time, Emit, QID, Bal
        [6, 2, 1, 3, 4, 5],  # travel time: 4, Time, Emit, QID, TravelTime, Toll
    ]
)
_WIDTH, _EMIT, _TIME, _WHO, _VALUE, _AMOUNT = range(6)
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_MOST_DIGITS = 18  # of a number that surely fits into an int64


@xs.compiled
def format_rows(out, block):
    """Write rows as lines of fifteen numbers; returns the number of bytes."""
    at = 0
    for i in range(block.shape[1]):
        for field in range(FIELDS):
            at = put(out, at, np.int64(block[field, i]))
            out[at] = COMMA
            at += 1
        out[at - 1] = NEWLINE
    return at


@xs.compiled
def _answer_fields(text, begin, end, values):
    """Read the numbers of a line; returns its number of fields, or -1 if it is no answer.

    The Emit is skipped, whatever it contains.
    """
    if end - begin < 2 or text[begin + 1] != COMMA:
        return -1  # the type is one digit
    kind = text[begin] - ZERO
    if kind < 0 or kind >= len(_LAYOUT):
        return -1
    fields, digits, value, negative = 0, 0, np.int64(0), False
    for at in range(begin, end + 1):
        c = text[at] if at < end else COMMA
        if c == COMMA:
            if fields >= MOST_FIELDS or (fields != _LAYOUT[kind, _EMIT] and digits == 0):
                return -1
            values[fields] = -value if negative else value
            fields += 1
            digits, value, negative = 0, np.int64(0), False
        elif fields == _LAYOUT[kind, _EMIT]:
            continue
        elif ZERO <= c <= NINE and digits < _MOST_DIGITS:
            digits += 1
            value = 10 * value + (c - ZERO)
        elif c == MINUS and digits == 0 and not negative:
            negative = True
        else:
            return -1
    return fields


@xs.compiled
def _answer(values, fields, row, kind, time, who, value, amount):
    """Enter the numbers of a line into a row of the columns; returns whether it is an answer."""
    layout = _LAYOUT[values[0]]
    if fields != layout[_WIDTH]:
        return False
    for field in range(1, fields):
        fits = _INT32_MIN <= values[field] <= _INT32_MAX
        if not fits and field != layout[_AMOUNT]:
            return False
    kind[row], time[row], who[row] = values[0], values[layout[_TIME]], values[layout[_WHO]]
    value[row] = values[layout[_VALUE]] if layout[_VALUE] >= 0 else 0
    amount[row] = values[layout[_AMOUNT]] if layout[_AMOUNT] >= 0 else 0
    return True


@xs.compiled
def parse_answers(text, length, columns, bad):
    """Parse the whole lines of `text[:length]`, as many as there is room for.

    `bad` gets begin and end of lines that are no answers. Returns the number of bytes read and of
    good and bad lines.
    """
    kind, time, who, value, amount = columns
    values = np.zeros(MOST_FIELDS, np.int64)
    at, good, wrong = 0, 0, 0
    while good < len(kind) and wrong < len(bad):
        end = at
        while end < length and text[end] != NEWLINE:
            end += 1
        if end >= length:
            break
        stop = end - 1 if end > at and text[end - 1] == RETURN else end
        fields = _answer_fields(text, at, stop, values)
        if fields > 0 and _answer(values, fields, good, kind, time, who, value, amount):
            good += 1
        else:
            bad[wrong, 0], bad[wrong, 1] = at, stop
            wrong += 1
        at = end + 1
    return at, good, wrong


@xs.compiled
def shift_rows(block, vid_by, xway_by, qid_by, out):
    """Copy rows with other vehicles, expressways and requests, as `operators.copies.shift` does."""
    for field in range(FIELDS):
        source, target = block[field], out[field]
        if field == VID:
            for i in range(len(source)):
                target[i] = source[i] + (vid_by if source[i] >= 0 else 0)
        elif field == XWAY:
            for i in range(len(source)):
                shifted = source[i] >= 0 and block[TYPE, i] != ASKS_BALANCE
                target[i] = source[i] + (xway_by if shifted else 0)
        elif field == QID:
            for i in range(len(source)):
                shifted = source[i] >= 0 and block[TYPE, i] != REPORTS
                target[i] = source[i] + (qid_by if shifted else 0)
        else:
            target[:] = source


@xs.compiled
def format_arrivals(out, tuples, arrival_ms):
    """Write tuples of answers as `Arrival,Type,f1,f2,f3,f4`; returns the number of bytes."""
    at = 0
    for i in range(len(tuples)):
        at = put_thousandths(out, at, arrival_ms)
        for field in range(tuples.shape[1]):
            out[at] = COMMA
            at = put(out, at + 1, np.int64(tuples[i, field]))
        out[at] = NEWLINE
        at += 1
    return at


TUPLE_FIELDS, ANSWER_FIELDS = 9, 5
#: The columns that a tuple of the thesis carries, after type, time and vehicle: of a report, and of
#: a request, and how many of the latter each type of request uses.
_REPORT_COLUMNS = np.array([SPD, XWAY, SEG, POS, LANE, DIR])
_REQUEST_COLUMNS = np.array([QID, XWAY, SINIT, SEND, DOW, TOD])
_USED_COLUMNS = np.array([0, 0, 1, 2, 6])


@xs.compiled
def to_tuples(block, out):
    """Rows of the thesis as tuples of nine numbers; fields without use are 0."""
    for i in range(block.shape[1]):
        kind = block[TYPE, i]
        out[i, 0], out[i, 1], out[i, 2] = kind, block[TIME, i], max(block[VID, i], 0)
        used = _USED_COLUMNS[kind] if 0 <= kind < len(_USED_COLUMNS) else 0
        for k in range(TUPLE_FIELDS - 3):
            if kind == REPORTS:
                out[i, 3 + k] = block[_REPORT_COLUMNS[k], i]
            else:
                out[i, 3 + k] = block[_REQUEST_COLUMNS[k], i] if k < used else 0


@xs.compiled
def of_tuples(tuples, block):
    """Tuples of nine numbers as rows of the thesis; columns without use are -1."""
    block[:, :] = -1
    for i in range(len(tuples)):
        row = tuples[i]
        block[TYPE, i], block[TIME, i], block[VID, i] = row[0], row[1], row[2]
        for k in range(TUPLE_FIELDS - 3):
            column = _REPORT_COLUMNS[k] if row[0] == REPORTS else _REQUEST_COLUMNS[k]
            block[column, i] = row[3 + k]


@xs.compiled
def tuples_of_answers(kind, who, value, amount, out):
    """Answers by the rules of the thesis as tuples of five numbers; fields without use are 0.

    An alert has its direction and mile in the value, and its expressway in the amount.
    """
    for i in range(len(kind)):
        k, row = kind[i], out[i]
        spent = min(max(amount[i], _INT32_MIN), _INT32_MAX)
        row[0], row[1], row[2], row[3], row[4] = k, who[i], spent, 0, 0
        if k == TOLL:
            row[3] = value[i]
        elif k == ALERT:
            row[3], row[4] = value[i] % SEGMENTS, value[i] // SEGMENTS
        elif k == TRAVEL_TIME:
            row[2], row[3] = value[i], spent


@xs.compiled
def answers_of_tuples(tuples, kind, who, value, amount):
    """Columns of tuples of answers, whose types are known; an alert keeps only its mile."""
    for i in range(len(tuples)):
        row = tuples[i]
        k = row[0]
        kind[i], who[i], value[i], amount[i] = k, row[1], 0, 0
        if k == TOLL:
            amount[i], value[i] = row[2], row[3]
        elif k == ALERT:
            value[i] = row[3]
        elif k in (BALANCE, EXPENDITURE):
            amount[i] = row[2]
        else:
            value[i], amount[i] = row[2], row[3]
