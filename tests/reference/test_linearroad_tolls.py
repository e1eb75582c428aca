"""The Linear Road reference by cases worked out by hand: tolls, averages, trips and charges."""

from __future__ import annotations

import pytest

from tests.reference.linearroad import RULES, Rules
from tests.reference.linearroad_rows import (
    at,
    balances,
    crowd,
    every_rule_set,
    notified,
    notified_at,
)


@every_rule_set
@pytest.mark.parametrize(
    ("n", "toll"),
    [(40, 0), (49, 0), (50, 0), (51, 2), (53, 18), (60, 200)],  # 2*1, 2*9, 2*100
)
def test_the_toll_is_twice_the_square_of_vehicles_beyond_50(
    rules: Rules, n: int, toll: int
) -> None:
    assert notified([*crowd(n, 0), at(1, 60)], rules, 1) == [(60, 30, toll)]


@every_rule_set
def test_vehicles_count_once_however_often_they_report(rules: Rules) -> None:
    rows = [*crowd(50, 0), *crowd(50, 30), at(1, 60)]
    assert notified(rows, rules, 1) == [(60, 30, 0)]


@every_rule_set
def test_vehicles_on_ramps_count(rules: Rules) -> None:
    rows = [row._replace(lane=(0, 4)[row.vid % 2]) for row in crowd(51, 0)]
    assert notified([*rows, at(1, 60)], rules, 1) == [(60, 30, 2)]


@every_rule_set
def test_vehicles_of_an_earlier_minute_do_not_count(rules: Rules) -> None:
    assert notified([*crowd(60, 0), at(1, 120)], rules, 1) == [(120, 30, 0)]


@every_rule_set
def test_vehicles_of_this_minute_and_of_another_road_do_not_count(rules: Rules) -> None:
    rows = [*crowd(60, 60), *crowd(60, 0, xway=1)]
    rows += [row._replace(vid=row.vid + 500, dir=1) for row in crowd(60, 0)]
    none = 0 if rules == "walmart" else -1
    assert notified([*rows, at(1, 65)], rules, 1) == [(65, none, 0)]


# LAV.


@every_rule_set
def test_a_lav_of_exactly_40_is_free(rules: Rules) -> None:
    # 52 vehicles, 39 and 41 by turns: 40.
    rows = [row._replace(spd=(39, 41)[row.vid % 2]) for row in crowd(52, 0)]
    assert notified([*rows, at(1, 60)], rules, 1) == [(60, 40, 0)]


def test_thirds_that_add_up_to_40_are_40() -> None:
    # Minutes 1, 2, 3: 119/3, 40, 121/3. Their mean is (119/3 + 120/3 + 121/3) / 3 = 40.
    speeds = [(0, 39), (1, 40), (2, 40), (60, 40), (120, 40), (121, 40), (122, 41)]
    rows = [at(100 + time, time, spd=spd) for time, spd in speeds]
    for rules in ("paper", "brandeis"):
        assert notified([*rows, at(1, 180)], rules, 1) == [(180, 40, 0)]


@pytest.mark.parametrize(("rules", "lav", "toll"), [("paper", 39, 8), ("walmart", 40, 0)])
def test_the_toll_rule_tests_the_integer_lav(rules: Rules, lav: int, toll: int) -> None:
    # 51 at 40 and one at 39: 39.98, floor 39 or rounded 40; 2 * (52 - 50)^2 = 8.
    rows = crowd(52, 0, spd=40)
    rows[0] = rows[0]._replace(spd=39)
    assert notified([*rows, at(1, 60)], rules, 1) == [(60, lav, toll)]


@pytest.mark.parametrize(("rules", "lav"), [("paper", 38), ("brandeis", 38), ("walmart", 33)])
def test_lav_is_a_mean_of_means_or_one_mean(rules: Rules, lav: int) -> None:
    # Minute 1: (15 + 60) / 2 = 37.5; minute 2: 40; together 38.75, floor 38.
    # One mean: (10 + 20 + 60 + 40) / 4 = 32.5, half up 33.
    rows = [at(2, 0, spd=10), at(3, 0, spd=60), at(2, 30, spd=20), at(4, 60, spd=40)]
    assert notified([*rows, at(1, 120)], rules, 1) == [(120, lav, 0)]


@every_rule_set
def test_lav_looks_back_five_minutes(rules: Rules) -> None:
    rows = [at(2, 0, spd=10), at(3, 119, spd=50)]  # minutes 1 and 2
    none = 0 if rules == "walmart" else -1
    lavs = {60: 10, 119: 10, 120: 30, 359: 30, 360: 50, 419: 50, 420: none, 59: none}
    for time, lav in lavs.items():
        seen = notified([*rows, at(1, time)], rules, 1)
        assert seen == [(time, lav, 0)], time


@pytest.mark.parametrize(("rules", "lav"), [("paper", -5), ("brandeis", -5), ("walmart", -4)])
def test_negative_speeds_count_as_they_are(rules: Rules, lav: int) -> None:
    # (-5 - 4) / 2 = -4.5: floor -5, half up -4.
    assert notified([at(2, 0, spd=-5), at(3, 0, spd=-4), at(1, 60)], rules, 1) == [(60, lav, 0)]


@every_rule_set
def test_a_vehicle_counts_in_each_segment_it_reports_from_in_a_minute(rules: Rules) -> None:
    # A, B, A: segment 10 has 10 and 30, its mean is 20; segment 11 has 60.
    rows = [at(2, 0, 10, spd=10), at(2, 20, 11, spd=60), at(2, 40, 10, spd=30)]
    rows += [at(1, 60, 10), at(3, 60, 11)]
    assert notified(rows, rules, 1) == [(60, 20, 0)]
    assert notified(rows, rules, 3) == [(60, 60, 0)]


# Trips and triggers.


@pytest.mark.parametrize("gap", [1, 29, 31, 60, 600])
def test_a_gap_other_than_30_s_starts_a_trip_under_paper_alone(gap: int) -> None:
    rows = [at(1, 0), at(1, gap)]
    assert notified_at(rows, "paper") == [0, gap]
    assert notified_at(rows, "brandeis") == notified_at(rows, "walmart") == [0]
    assert notified_at([at(1, 0), at(1, 30)], "paper") == [0]


def test_a_report_on_another_expressway_does_not_break_a_trip() -> None:
    rows = [at(1, 0), at(1, 10, xway=1), at(1, 30)]
    assert notified_at(rows, "paper") == [0, 10]


def test_walmart_starts_trips_on_lane_0_after_more_than_60_s() -> None:
    assert notified_at([at(1, 0), at(1, 60, lane=0)], "walmart") == [0]
    assert notified_at([at(1, 0), at(1, 61, lane=0)], "walmart") == [0, 61]
    assert notified_at([at(1, 0), at(1, 61, lane=1)], "walmart") == [0]


def test_a_segment_entered_again_triggers_again_except_under_brandeis() -> None:
    rows = [at(1, 0, 10), at(1, 30, 11), at(1, 60, 10)]
    assert notified_at(rows, "paper") == notified_at(rows, "walmart") == [0, 30, 60]
    assert notified_at(rows, "brandeis") == [0, 30]
    rows += [at(1, 5000, 10), at(1, 5030, 12)]  # once in the whole run
    assert notified_at(rows, "brandeis") == [0, 30, 5030]


def test_lane_4_triggers_nothing() -> None:
    for rules in RULES:
        assert notified_at([at(1, 0, lane=4)], rules) == []
        assert notified_at([at(1, 0, 10), at(1, 30, 11, lane=4)], rules) == [0]
    rows = [at(1, 0, lane=4), at(1, 30)]  # the same segment, now on the road
    assert notified_at(rows, "paper") == notified_at(rows, "walmart") == []
    assert notified_at(rows, "brandeis") == [30]


def test_a_turn_triggers_where_state_is_per_direction() -> None:
    rows = [at(1, 0, dir=0), at(1, 30, dir=1)]
    assert notified_at(rows, "paper") == [0]  # Seg alone decides
    assert notified_at(rows, "brandeis") == notified_at(rows, "walmart") == [0, 30]


def test_walmart_ignores_reports_after_an_exit_until_lane_0() -> None:
    exit = [at(1, 0, 10), at(1, 30, 10, lane=4)]
    ignored = at(1, 60, 11)
    assert notified_at([*exit, ignored], "walmart") == [0]
    # 90 - 30 = 60 s after the exit: the trip goes on, and its segment is no new one.
    assert notified_at([*exit, ignored, at(1, 90, 10, lane=0)], "walmart") == [0]
    # 61 s after the exit, 31 s after the ignored report: a new trip.
    assert notified_at([*exit, ignored, at(1, 91, 10, lane=0)], "walmart") == [0, 91]
    # Ignored in the statistics too: the next vehicle in segment 11 finds nobody.
    assert notified([*exit, ignored, at(2, 120, 11)], "walmart", 2) == [(120, 0, 0)]
    assert notified([*exit, ignored, at(2, 120, 11)], "paper", 2) == [(120, 50, 0)]
    # The other direction is apart.
    assert notified_at([*exit, at(1, 60, 11, dir=1)], "walmart") == [0, 60]


def test_walmart_counts_the_exit_itself() -> None:
    rows = [at(1, 0, 10, lane=4, spd=22), at(2, 60, 10)]
    assert notified(rows, "walmart", 2) == [(60, 22, 0)]


# Charges: 53 vehicles in segment 10 in minute 1, so it costs 2 * 3^2 = 18 in minute 2.

DENSE = crowd(53, 0)


@every_rule_set
def test_a_toll_is_charged_on_leaving_the_segment(rules: Rules) -> None:
    rows = [*DENSE, at(1, 60, 10), at(1, 90, 11), at(1, 120, 12)]
    # Segment 11 is free: nobody was there in minute 1.
    assert balances(rows, rules, 1, [59, 60, 89, 90, 91, 120, 999]) == [0, 0, 0, 18, 18, 18, 18]
    assert balances(rows, rules, 4711, [90]) == [0]  # never seen


def test_leaving_by_the_next_segments_exit_is_charged_and_by_the_same_is_not() -> None:
    for rules in ("paper", "walmart"):
        assert balances([*DENSE, at(1, 60, 10), at(1, 90, 11, lane=4)], rules, 1, [90]) == [18]
        assert balances([*DENSE, at(1, 60, 10), at(1, 90, 10, lane=4)], rules, 1, [900]) == [0]


@pytest.mark.parametrize("rules", ["paper", "walmart"])
def test_a_segment_entered_on_lane_4_is_free(rules: Rules) -> None:
    rows = [*DENSE, at(1, 60, 10, lane=4), at(1, 90, 10, lane=0), at(1, 120, 11)]
    assert balances(rows, rules, 1, [900]) == [0]


def test_a_trip_that_ends_in_a_segment_is_not_charged_for_it() -> None:
    rows = [*DENSE, at(1, 60, 10), at(1, 97, 11)]  # 37 s: a new trip, under paper
    assert balances(rows, "paper", 1, [97, 900]) == [0, 0]
    assert balances(rows, "walmart", 1, [96, 97]) == [0, 18]
    assert balances(rows, "brandeis", 1, [96, 97]) == [0, 18]
    rows = [*DENSE, at(1, 60, 10), at(1, 121, 11, lane=0)]  # a new trip, under walmart too
    assert balances(rows, "walmart", 1, [900]) == [0]


def test_the_toll_charged_is_the_one_quoted_at_entry() -> None:
    # Quoted 18 at 60; a second report from the segment at 90, then out at 120 in minute 3,
    # when the segment would be free.
    rows = [*DENSE, at(1, 60, 10), at(1, 90, 10), at(1, 120, 11)]
    assert balances(rows, "paper", 1, [119, 120]) == [0, 18]


def test_brandeis_charges_at_the_next_notification() -> None:
    rows = [*DENSE, at(1, 60, 10), at(1, 90, 11, lane=4), at(1, 120, 12)]
    assert balances(rows, "brandeis", 1, [90, 119, 120]) == [0, 0, 18]
    rows = [*DENSE, at(1, 60, 10), at(1, 75, 30, xway=1)]  # on any expressway
    assert balances(rows, "brandeis", 1, [74, 75]) == [0, 18]
    rows = [*DENSE, at(1, 30, 11), at(1, 60, 10), at(1, 90, 11)]  # 11 is notified no more
    assert balances(rows, "brandeis", 1, [900]) == [0]
    rows = [*DENSE, at(1, 60, 10), at(1, 60, 30, xway=1), at(1, 99, 12)]  # one second, two roads
    assert balances(rows, "brandeis", 1, [60, 98, 99]) == [0, 0, 18]


def test_the_account_is_one_for_all_expressways() -> None:
    rows = [*DENSE, *crowd(52, 0, 20, xway=1)]  # 2 * 2^2 = 8 on the other
    rows += [at(1, 60, 10), at(1, 61, 20, xway=1), at(1, 90, 11), at(1, 91, 21, xway=1)]
    assert balances(rows, "paper", 1, [89, 90, 91]) == [0, 18, 26]
