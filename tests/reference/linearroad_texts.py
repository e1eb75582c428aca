"""Linear Road flat files with bad lines of every kind: a hypothesis strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from tests.reference.linearroad_input import (
    BALANCE,
    DOMAIN,
    EXPENDITURE,
    HEADER,
    INT32_MAX,
    NEEDED,
    TRAVEL_TIME,
    Row,
    to_text,
)
from tests.reference.linearroad_strategies import Choose, inputs

T = TypeVar("T")
#: What a bad line is made of: each is a field that some check refuses, or a line's end.
BAD_FIELDS = ("", " 1", "1.5", "x", "+1", "--1", "2147483648", "-2147483649", "9" * 30, "\r", "é")
EDGE_FIELDS = (
    *("-1", "0", "1", "2", "3", "4", "5", "7", "8", "69", "70", "99", "100", "1440", "1441"),
    *("527999", "528000", "-0", "007", "2147483647", "-2147483648", "0" * 20 + "1"),
)


QUERIES = (
    Row(BALANCE, 60, 1, qid=1),
    Row(EXPENDITURE, 60, 1, xway=0, qid=2, day=69),
    Row(TRAVEL_TIME, 60, 1, xway=0, qid=3, sinit=0, send=99, dow=7, tod=1440),
)


def at_the_limit(choose: Choose, fields: list[str]) -> list[str]:
    """One or two of the fields that a row needs at the ends of their domains, or beyond."""
    changed = list(fields)
    for _ in range(choose((1, 1, 2))):
        name = choose(NEEDED[int(fields[0])])
        lowest, highest = DOMAIN[name]
        value = choose((lowest - 1, lowest - 1, lowest, highest, highest + 1))
        changed[HEADER.index(name)] = str(min(value, INT32_MAX))
    return changed


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A flat file with bad lines of every kind between good ones."""

    def choose(options: Sequence[T]) -> T:
        return draw(st.sampled_from(options))

    good = draw(inputs(max_cars=2, max_platoons=0))[:20]
    lines = to_text(choose((*good, *QUERIES)) for _ in range(choose(range(16)))).splitlines()
    if choose((True, True, False)):
        lines.sort(key=lambda line: int(line.split(",")[1]))
    for k, line in enumerate(lines):
        fields = line.split(",")
        spot = choose(range(15))
        harm = choose(("none", "none", "limit", "limit", "edge", "bad", "count", "empty", "cr"))
        if harm == "limit":
            fields = at_the_limit(choose, fields)
        elif harm == "edge":
            fields[spot] = choose(EDGE_FIELDS)
        elif harm == "bad":
            fields[spot] = choose(BAD_FIELDS)
        elif harm == "count":
            fields = fields[:spot] if choose((True, False)) else [*fields, "0"]
        lines[k] = {"empty": "", "cr": line + "\r"}.get(harm, ",".join(fields))
    return "\n".join(lines) + choose(("", "\n", "\n\n"))
