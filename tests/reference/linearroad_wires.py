"""The wires of Linear Road, written slowly and apart from `linearroad.wire`."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

#: By type: the number of fields, and the places of time, VID or QID, value and amount.
LAYOUTS = {
    0: (6, 3, {"time": 2, "who": 1, "value": 4, "amount": 5}),
    1: (5, 2, {"time": 1, "who": 3, "value": 4}),
    2: (6, 2, {"time": 1, "value": 3, "who": 4, "amount": 5}),
    3: (5, 2, {"time": 1, "who": 3, "amount": 4}),
    4: (6, 2, {"time": 1, "who": 3, "value": 4, "amount": 5}),
}

Answer = tuple[int, int, int, int, int]  # type, time, who, value, amount


def rows_as_lines(rows: Sequence[Sequence[int]]) -> bytes:
    """Rows of fifteen numbers as text."""
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


def answer_of_line(line: str) -> Answer | None:
    """An answer, or None if the line is none; the Emit may be anything."""
    fields = line.split(",")
    if fields[0] not in ("0", "1", "2", "3", "4"):
        return None
    kind = int(fields[0])
    width, emit, places = LAYOUTS[kind]
    if len(fields) != width:
        return None
    numbers = []
    for i, text in enumerate(fields):
        if i == emit:
            numbers.append(0)
            continue
        if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
            return None
        numbers.append(int(text))
        if i != places.get("amount") and not -(2**31) <= numbers[-1] < 2**31:
            return None
    found = {name: numbers[place] for name, place in places.items()}
    return (
        kind, found["time"], found["who"], found.get("value", 0), found.get("amount", 0)
    )  # fmt: skip


def line_of_answer(answer: Answer, emit_ms: int) -> str:
    """The line of an answer, without its end."""
    kind, time, who, value, amount = answer
    width, emit, places = LAYOUTS[kind]
    fields = [str(kind)] + [""] * (width - 1)
    fields[emit] = f"{emit_ms // 1000}.{emit_ms % 1000:03}"
    for name, number in (("time", time), ("who", who), ("value", value), ("amount", amount)):
        if name in places:
            fields[places[name]] = str(number)
    return ",".join(fields)


def tuple_of_row(row: Sequence[int]) -> bytes:
    """A row of the thesis in fifteen columns as 36 bytes."""
    kind, time, vid, spd, xway, lane, way, seg, pos, qid, sinit, send, dow, tod, _ = row
    by_type = {
        0: (spd, xway, seg, pos, lane, way), 2: (qid,), 3: (qid, xway),
        4: (qid, xway, sinit, send, dow, tod),
    }  # fmt: skip
    used = (kind, time, max(vid, 0), *by_type.get(kind, ()))
    return struct.pack("<9i", *used, *[0] * (9 - len(used)))


def tuple_of_answer(answer: Answer) -> bytes:
    """An answer of the thesis' query as 20 bytes; an alert's value is 100 * Dir + Mile."""
    kind, _, who, value, amount = answer
    fields = {
        0: (amount, value, 0),
        1: (amount, value % 100, value // 100),
        2: (amount, 0, 0),
        3: (amount, 0, 0),
        4: (value, amount, 0),
    }[kind]
    return struct.pack("<5i", kind, who, *fields)
