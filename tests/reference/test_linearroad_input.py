"""The Linear Road reference by cases worked out by hand: good rows, and why others are bad."""

from __future__ import annotations

import pytest

from tests.reference.linearroad import Row, parse

GOOD = "0,5,1,50,0,1,0,2,11000,-1,-1,-1,-1,-1,-1"
BALANCE = "2,5,1,-1,-1,-1,-1,-1,-1,7,-1,-1,-1,-1,-1"
SPENT = "3,5,1,-1,0,-1,-1,-1,-1,7,-1,-1,-1,-1,69"
TRAVEL = "4,5,1,-1,0,-1,-1,-1,-1,7,0,99,7,1440,-1"


def changed(line: str, **fields: object) -> str:
    """A line with other values in some fields."""
    values = Row(*map(int, line.split(",")))._asdict() | fields
    return ",".join(map(str, values.values()))


def reasons(*lines: str) -> list[tuple[int, str]]:
    text = "\n".join(lines)
    _, rejects = parse(text)
    assert all(reject.row == lines[reject.line - 1] for reject in rejects)
    return [(reject.line, reject.reason) for reject in rejects]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "field count"),
        ("x", "field count"),
        (GOOD + ",1", "field count"),
        (GOOD + ",", "field count"),
        (changed(GOOD, spd=""), "not an integer"),
        (changed(GOOD, spd="1.0"), "not an integer"),
        (changed(GOOD, spd="+1"), "not an integer"),
        (changed(GOOD, spd=" 1"), "not an integer"),
        (changed(GOOD, spd="١"), "not an integer"),
        (changed(BALANCE, day="x"), "not an integer"),
        (changed(GOOD, vid=2**31, spd="x"), "not an integer"),
        (changed(GOOD, type=2**31), "out of int32"),
        (changed(GOOD, day=-(2**31) - 1), "out of int32"),
        (changed(GOOD, type=9, day="9" * 5000), "out of int32"),
        (changed(GOOD, type=1), "unknown type"),
        (changed(GOOD, type=-1, time=-1), "unknown type"),
        (changed(GOOD, time=-1, vid=-1), "Time"),
        (changed(GOOD, vid=-1, xway=-1), "VID"),
        (changed(GOOD, xway=-1, lane=5), "XWay"),
        (changed(GOOD, lane=5), "Lane"),
        (changed(GOOD, lane=-1), "Lane"),
        (changed(GOOD, dir=2), "Dir"),
        (changed(GOOD, seg=100, pos=-1), "Seg"),
        (changed(GOOD, pos=528_000), "Pos"),
        (changed(GOOD, pos=-1), "Pos"),
        (changed(BALANCE, time=-1), "Time"),
        (changed(BALANCE, vid=-1), "VID"),
        (changed(BALANCE, qid=-1), "QID"),
        (changed(SPENT, xway=-1, qid=-1), "XWay"),
        (changed(SPENT, qid=-1, day=0), "QID"),
        (changed(SPENT, day=70), "Day"),
        (changed(TRAVEL, vid=-1), "VID"),
        (changed(TRAVEL, xway=-1), "XWay"),
        (changed(TRAVEL, sinit=100), "Sinit"),
        (changed(TRAVEL, send=-1), "Send"),
        (changed(TRAVEL, dow=0), "DOW"),
        (changed(TRAVEL, dow=8), "DOW"),
        (changed(TRAVEL, tod=0), "TOD"),
        (changed(TRAVEL, tod=1441), "TOD"),
    ],
)
def test_a_bad_row_is_rejected_with_its_reason(line: str, reason: str) -> None:
    assert reasons(GOOD, line, BALANCE) == [(2, reason)]


@pytest.mark.parametrize(
    "line",
    [
        *(GOOD, BALANCE, SPENT, TRAVEL),
        changed(GOOD, spd=-5),
        changed(GOOD, spd=200, qid=-99, day=1000),
        changed(GOOD, vid=2**31 - 1, xway=2**31 - 1, time=2**31 - 1),
        changed(GOOD, lane=4, dir=1, seg=99, pos=527_999),
        changed(GOOD, seg=99),  # taken as given
        changed(BALANCE, xway=-7, lane=9, seg=500, tod=0, day=0),
        changed(SPENT, lane=9, sinit=-5, tod=0),
        changed(TRAVEL, lane=9, day=0, pos=-9),
        changed(GOOD, spd="-0", xway="00", vid="0" * 5000 + "7"),
    ],
)
def test_a_good_row_is_accepted(line: str) -> None:
    rows, rejects = parse(line + "\n")
    assert not rejects
    expected = [field.lstrip("-0") or "0" for field in line.split(",")]
    assert [str(value).lstrip("-") for value in rows[0]] == expected


def test_a_row_before_the_clock_is_out_of_order_and_a_rejected_row_moves_no_clock() -> None:
    later, earlier = changed(GOOD, vid=2, time=7), changed(GOOD, vid=3, time=6)
    assert reasons(GOOD, later, earlier, changed(BALANCE, time=6)) == [
        (3, "out of order"),
        (4, "out of order"),
    ]
    assert reasons(GOOD, changed(later, lane=5), earlier) == [(2, "Lane")]
    assert reasons(changed(BALANCE, time=7), GOOD) == [(2, "out of order")]
    # Out of order, and the second of its second as well.
    assert reasons(GOOD, later, GOOD) == [(3, "out of order")]


def test_the_first_of_two_reports_in_a_second_counts() -> None:
    second = changed(GOOD, seg=3, dir=1)
    elsewhere = changed(GOOD, xway=1)
    assert reasons(GOOD, BALANCE, elsewhere, second, GOOD) == [
        (4, "second report"),
        (5, "second report"),
    ]
    assert reasons(changed(GOOD, dir=2), second) == [(1, "Dir")]  # the first was no report
    rows, _ = parse(f"{GOOD}\n{second}\n")
    assert [row.seg for row in rows] == [2]


def test_line_ends() -> None:
    good = parse(GOOD)
    assert good == parse(GOOD + "\n") == parse(GOOD + "\r\n")
    assert parse("") == ([], [])
    assert [reject[:2] for reject in parse("\n")[1]] == [(1, "field count")]
    assert [reject[:2] for reject in parse(f"{GOOD}\n\r\n\n")[1]] == [
        (2, "field count"),
        (3, "field count"),
    ]
    assert parse(GOOD + "\r")[1] == [(1, "not an integer", GOOD + "\r")]  # before no newline
    assert parse(GOOD + "\r\r\n")[1] == [(1, "not an integer", GOOD + "\r")]
    assert parse(GOOD + "\x0b\n")[1][0].reason == "not an integer"
