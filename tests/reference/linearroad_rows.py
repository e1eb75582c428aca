"""Rows and answers for the tests of the Linear Road reference, by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.reference.linearroad import RULES, Row, Rules, answers

every_rule_set = pytest.mark.parametrize("rules", RULES)


def at(
    vid: int,
    time: int,
    seg: int = 10,
    *,
    lane: int = 1,
    spd: int = 50,
    xway: int = 0,
    dir: int = 0,
    pos: int | None = None,
) -> Row:
    """A position report, 100 feet into its segment unless told."""
    return Row(0, time, vid, spd, xway, lane, dir, seg, seg * 5280 + 100 if pos is None else pos)


def crowd(n: int, time: int, seg: int = 10, spd: int = 30, xway: int = 0) -> list[Row]:
    """One report each from n vehicles in one second."""
    return [at(1000 + i, time, seg, spd=spd, xway=xway, pos=seg * 5280 + i) for i in range(n)]


def notified(rows: Iterable[Row], rules: Rules, vid: int) -> list[tuple[int, ...]]:
    """(Time, Lav, Toll) of a vehicle's toll notifications."""
    rows = sorted(rows, key=lambda row: row.time)
    return [answer[2:] for answer in answers(rows, rules) if answer[:2] == (0, vid)]


def notified_at(rows: Iterable[Row], rules: Rules, vid: int = 1) -> list[int]:
    return [time for time, _, _ in notified(rows, rules, vid)]


def balances(rows: Iterable[Row], rules: Rules, vid: int, times: Iterable[int]) -> list[int]:
    """The balance of a vehicle at each of some times."""
    asked = [Row(2, time, vid, qid=k) for k, time in enumerate(times)]
    found = answers([*rows, *asked], rules)
    by_qid = {answer[3]: answer[4] for answer in found if answer[0] == 2}
    return [by_qid[row.qid] for row in asked]
