"""The Linear Road reference by cases worked out by hand: travel times and expenditures."""

from __future__ import annotations

import pytest

from tests.reference.linearroad import Row, answers
from tests.reference.linearroad_history import SegmentRow

FRIDAYS = range(7, 71, 7)


def journey(
    history: list[SegmentRow] | None, sinit: int, send: int, tod: int, dow: int = 5
) -> tuple[int, ...]:
    """(TravelTime, Toll)."""
    query = Row(4, 9, 1, xway=0, qid=6, sinit=sinit, send=send, dow=dow, tod=tod)
    (found,) = answers([query], "paper", segment_history=history)
    assert found[:3] == (4, 9, 6)
    return found[3:]


def means(minute: int, seg: int, lav: int, cnt: int = 0, dir: int = 0) -> list[SegmentRow]:
    return [(day, minute, 0, dir, seg, lav, cnt, 0) for day in FRIDAYS]


def test_three_segments_at_36_mph_are_five_minutes() -> None:
    # 60 / 36 = 5/3 minutes each: at 7, 8 2/3 and 10 1/3. Three times 2 * (53 - 50)^2.
    three = means(7, 3, 36, 53) + means(8, 4, 36, 53) + means(10, 5, 36, 53)
    assert journey(three, 3, 6, 7) == (300, 54)
    # The fourth is entered at 12 exactly, not in minute 11, where float64 would see it.
    four = three + means(11, 6, 10) + means(12, 6, 60)
    assert journey(four, 3, 7, 7) == (360, 54)


def test_a_journey_west_goes_down() -> None:
    west = means(100, 6, 60, dir=1) + means(101, 5, 30, dir=1)  # 1 and 2 minutes
    assert journey(west, 6, 4, 100) == (180, 0)
    assert journey(west, 6, 6, 100) == (0, 0)


def test_minutes_wrap_within_the_day_of_week() -> None:
    night = means(1440, 0, 60) + means(1, 1, 30)
    assert journey(night, 0, 2, 1440) == (180, 0)


def test_missing_days_are_left_out() -> None:
    # Means of two days: lav (30 + 60) / 2 = 45, 80 s; lav (39 + 40) / 2 = 39.5, of which floor is
    # below 40, 3600 / 39.5 = 91.1 s, and cnt (51 + 54) / 2 = 52.5, so 2 * 2^2.
    def two(lavs: tuple[int, int], cnts: tuple[int, int]) -> list[SegmentRow]:
        return [
            (day, 5, 0, 0, 0, lav, cnt, 0)
            for day, lav, cnt in zip((7, 63), lavs, cnts, strict=True)
        ]

    assert journey(two((30, 60), (51, 54)), 0, 1, 5) == (80, 0)
    assert journey(two((39, 40), (51, 54)), 0, 1, 5) == (91, 8)
    assert journey(two((39, 40), (50, 51)), 0, 1, 5) == (91, 0)  # floor(50.5) is not above 50
    # Another day of the week has no row: speed 1, an hour, and no toll.
    assert journey(two((30, 60), (51, 54)), 0, 1, 5, dow=4) == (3600, 0)


def test_standing_traffic_moves_at_1_mph_and_is_tolled() -> None:
    assert journey(means(5, 0, 0, 60), 0, 1, 5) == (3600, 200)
    assert journey([], 0, 2, 5) == (7200, 0)


def test_half_a_second_is_rounded_up() -> None:
    assert journey(means(5, 0, 32), 0, 1, 5) == (113, 0)  # 3600 / 32 = 112.5


def test_without_segment_history_travel_time_is_not_answered() -> None:
    assert journey(None, 3, 6, 100) == (-1, -1)


@pytest.mark.parametrize(
    ("day", "dow"), [(1, 4), (2, 3), (3, 2), (4, 1), (5, 7), (6, 6), (7, 5), (70, 5)]
)
def test_yesterday_was_day_4_of_the_week(day: int, dow: int) -> None:
    assert journey([(day, 5, 0, 0, 0, 60, 0, 0)], 0, 1, 5, dow=dow) == (60, 0)


def test_daily_expenditure_is_the_row_of_toll_history() -> None:
    rows = [Row(3, 9, 1, xway=2, qid=k, day=day) for k, day in enumerate((1, 2))]
    rows.append(Row(3, 9, 1, xway=0, qid=2, day=1))
    assert answers(rows, "paper", tolls=[(1, 1, 2, 77)]) == [
        (3, 9, 0, 77),
        (3, 9, 1, 0),
        (3, 9, 2, 0),
    ]
    assert answers(rows[:1], "paper") == [(3, 9, 0, 0)]
