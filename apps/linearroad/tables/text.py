"""Flat files in compiled code: lines to columns, answers to lines."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.schema import (
    ALERT,
    BALANCE,
    FIELD_COUNT,
    LINE_TOO_LONG,
    NOT_AN_INTEGER,
    OUT_OF_INT32,
    SEGMENTS,
    TOLL,
    TRAVEL_TIME,
)
from xstream.kernels.decimals import put, put_thousandths

NEWLINE, RETURN, COMMA, MINUS, ZERO, NINE = 10, 13, 44, 45, 48, 57
#: The longest line that is parsed. Fifteen numbers take less than 180 bytes without leading zeros.
LONGEST_LINE = 1 << 16
INT32_MAX = 2147483647


@xs.compiled
def parse_line(text, begin, end, columns, row):
    """Parse a line into a row of the columns; returns 0, or the reason why that is not possible."""
    fields, digits, value, negative = 0, 0, np.int64(0), False
    integers, fit, wanted = True, True, columns.shape[0]
    for at in range(begin, end + 1):
        c = text[at] if at < end else COMMA
        if c == COMMA:
            if digits == 0:
                integers = False
            if value > INT32_MAX + (1 if negative else 0):
                fit = False
            if fields < wanted:
                columns[fields, row] = -value if negative else value
            fields += 1
            digits, value, negative = 0, np.int64(0), False
        elif ZERO <= c <= NINE:
            digits += 1
            if value <= INT32_MAX:
                value = 10 * value + (c - ZERO)
        elif c == MINUS and digits == 0 and not negative:
            negative = True
        else:
            integers = False
    if end - begin > LONGEST_LINE:
        return LINE_TOO_LONG
    if fields != wanted:
        return FIELD_COUNT
    if not integers:
        return NOT_AN_INTEGER
    return 0 if fit else OUT_OF_INT32


@xs.compiled
def parse(text, length, last, columns, starts, bad, reasons):
    """Parse lines of `text[:length]` into columns, as many as there is room for.

    A line without a newline is left for the next call, unless it is the `last`. Returns the number
    of bytes and lines that were read and of good and bad rows. `starts` gets the index of each
    line, `bad` the numbers of bad lines and `reasons` why they are bad; all other lines are good.
    """
    at, lines, good, wrong = 0, 0, 0, 0
    room = min(columns.shape[1], len(starts) - 1)
    while at < length and lines < room:
        end = at
        while end < length and text[end] != NEWLINE:
            end += 1
        if end == length and not last:
            break
        stop = end
        # A CR belongs to the end of a line only in front of a newline.
        if end < length and stop > at and text[stop - 1] == RETURN:
            stop -= 1
        starts[lines] = at
        why = parse_line(text, at, stop, columns, good)
        if why == 0:
            good += 1
        else:
            bad[wrong], reasons[wrong] = lines, why
            wrong += 1
        lines += 1
        at = end + 1 if end < length else end
    starts[lines] = at
    return at, lines, good, wrong


@xs.compiled
def format_answers(out, kind, time, emit, who, value, amount):
    """Format answers as in docs/linear-road-rules.md, section 4.1; returns the number of bytes."""
    at = 0
    for i in range(len(kind)):
        k = kind[i]
        out[at], out[at + 1] = ZERO + k, COMMA
        at += 2
        if k == TOLL:  # VID, Time, Emit, Lav, Toll
            at = put(out, at, np.int64(who[i]))
            out[at] = COMMA
            at += 1
        at = put(out, at, np.int64(time[i]))
        out[at] = COMMA
        at = put_thousandths(out, at + 1, emit[i])
        out[at] = COMMA
        at += 1
        if k == BALANCE:  # ResultTime
            at = put(out, at, np.int64(value[i]))
            out[at] = COMMA
            at += 1
        if k != TOLL:
            at = put(out, at, np.int64(who[i]))
            out[at] = COMMA
            at += 1
        if k in (TOLL, ALERT, TRAVEL_TIME):
            at = put(out, at, np.int64(value[i]))
            if k != ALERT:
                out[at] = COMMA
                at += 1
        if k != ALERT:
            at = put(out, at, amount[i])
        out[at] = NEWLINE
        at += 1
    return at


@xs.compiled
def thesis_fields(kind, who, value, amount):
    """The four fields of an answer of the thesis: unused ones are 0."""
    if kind == TOLL:  # VID, Toll, Speed
        return np.int64(who), amount, np.int64(value), np.int64(0)
    if kind == ALERT:  # VID, XWay, Mile, Dir
        return np.int64(who), amount, np.int64(value % SEGMENTS), np.int64(value // SEGMENTS)
    if kind == TRAVEL_TIME:  # QID, TravelTime, Toll
        return np.int64(who), np.int64(value), amount, np.int64(0)
    return np.int64(who), amount, np.int64(0), np.int64(0)


@xs.compiled
def format_stamped(out, kind, emit, who, value, amount):
    """Format answers of the thesis as `Arrival,Type,f1,f2,f3,f4`; returns the number of bytes."""
    at = 0
    for i in range(len(kind)):
        at = put_thousandths(out, at, emit[i])
        out[at], out[at + 1] = COMMA, ZERO + kind[i]
        at += 2
        for field in thesis_fields(kind[i], who[i], value[i], amount[i]):
            out[at] = COMMA
            at = put(out, at + 1, field)
        out[at] = NEWLINE
        at += 1
    return at
