"""Linear Road's input, read as docs/linear-road-rules.md, section 1 says: the slow reference."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

#: docs/linear-road-rules.md, section 1.1: the 15 fields, in order, spelled as there.
HEADER = [
    *("Type", "Time", "VID", "Spd", "XWay", "Lane", "Dir", "Seg", "Pos"),
    *("QID", "Sinit", "Send", "DOW", "TOD", "Day"),
]
REPORT, BALANCE, EXPENDITURE, TRAVEL_TIME = 0, 2, 3, 4
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


class Row(NamedTuple):
    """One input row: the header's fields in lower case, as in the Parquet form of the table."""

    type: int
    time: int
    vid: int
    spd: int = -1
    xway: int = -1
    lane: int = -1
    dir: int = -1
    seg: int = -1
    pos: int = -1
    qid: int = -1
    sinit: int = -1
    send: int = -1
    dow: int = -1
    tod: int = -1
    day: int = -1


class Reject(NamedTuple):
    """A bad row: its line number from 1, the reason, and the row as read (without newline)."""

    line: int
    reason: str
    row: str


#: docs/linear-road-rules.md, section 1.1: the smallest and the largest value of each field.
DOMAIN: dict[str, tuple[int, int]] = {
    "Time": (0, INT32_MAX),
    "VID": (0, INT32_MAX),
    "XWay": (0, INT32_MAX),
    "Lane": (0, 4),
    "Dir": (0, 1),
    "Seg": (0, 99),
    "Pos": (0, 527_999),
    "QID": (0, INT32_MAX),
    "Sinit": (0, 99),
    "Send": (0, 99),
    "DOW": (1, 7),
    "TOD": (1, 1440),
    "Day": (1, 69),
}

#: The fields that each type needs (the tuples of the paper's section 3.1.2); others are ignored.
NEEDED: dict[int, tuple[str, ...]] = {
    REPORT: ("Time", "VID", "XWay", "Lane", "Dir", "Seg", "Pos"),
    BALANCE: ("Time", "VID", "QID"),
    EXPENDITURE: ("Time", "VID", "XWay", "QID", "Day"),
    TRAVEL_TIME: ("Time", "VID", "XWay", "QID", "Sinit", "Send", "DOW", "TOD"),
}


def int32(field: str) -> int | None:
    """The number that `field` spells, or None outside int32; leading zeros are no matter."""
    digits = field.removeprefix("-").lstrip("0") or "0"
    if len(digits) > 10:
        return None
    value = -int(digits) if field.startswith("-") else int(digits)
    return value if INT32_MIN <= value <= INT32_MAX else None


def unparsed(line: str) -> str | None:
    """docs/linear-road-rules.md, section 1.4: why a line cannot be parsed, or None."""
    fields = line.split(",")
    if len(fields) != len(HEADER):
        return "field count"
    if not all(re.fullmatch("-?[0-9]+", field) for field in fields):
        return "not an integer"
    if any(int32(field) is None for field in fields):
        return "out of int32"
    return None


def outside(row: Row) -> str | None:
    """docs/linear-road-rules.md, section 1.4: `unknown type`, or the first bad field."""
    if row.type not in NEEDED:
        return "unknown type"
    for name, value in zip(HEADER, row, strict=True):
        if name in NEEDED[row.type]:
            lowest, highest = DOMAIN[name]
            if not lowest <= value <= highest:
                return name
    return None


def lines_of(text: str) -> list[str]:
    """The lines of a flat file: ended by newlines, a CR before the newline ignored."""
    *ended, rest = text.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([rest] if rest else [])


def parse(text: str) -> tuple[list[Row], list[Reject]]:
    """docs/linear-road-rules.md, section 1: the good rows in file order, and the bad ones.

    Checks are made in this order, and the first that fails names the reason: field count, not an
    integer (any field), out of int32 (any field), unknown type, the domains in the header's
    order, out of order, second report.

    >>> rows, rejects = parse("0,5,1,50,0,1,0,2,11000,-1,-1,-1,-1,-1,-1\\n\\n")
    >>> rows[0].seg, rejects
    (2, [Reject(line=2, reason='field count', row='')])
    """
    rows: list[Row] = []
    rejects: list[Reject] = []
    clock = 0
    seen: set[tuple[int, int, int]] = set()
    for number, line in enumerate(lines_of(text), start=1):
        reason = unparsed(line)
        if reason is None:
            row = Row(*(int32(field) or 0 for field in line.split(",")))
            key = (row.vid, row.xway, row.time)
            reason = outside(row)
            if reason is None and row.time < clock:
                reason = "out of order"
            if reason is None and row.type == REPORT and key in seen:
                reason = "second report"
        if reason is None:
            rows.append(row)
            clock = row.time
            if row.type == REPORT:
                seen.add(key)
        else:
            rejects.append(Reject(number, reason, line))
    return rows, rejects


def to_text(rows: Iterable[tuple[int, ...]]) -> str:
    """Rows as a flat file, each line ended by a newline."""
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def implausible(rows: Iterable[Row]) -> int:
    """docs/linear-road-rules.md, section 1.5: how many reports have a Spd outside 0..100."""
    return sum(1 for row in rows if row.type == REPORT and not 0 <= row.spd <= 100)
