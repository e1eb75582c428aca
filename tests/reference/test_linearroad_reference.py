"""The Linear Road reference gives what the rules page says, by cases worked out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference.linearroad import RULES, Row, Rules, answers, parse, to_text
from tests.reference.linearroad_history import SegmentRow
from tests.reference.linearroad_strategies import (
    Scenario,
    inputs,
    permuted_within_seconds,
    scenario,
    scenarios,
    shifted,
)
from tests.reference.linearroad_texts import texts

every_rule_set = pytest.mark.parametrize("rules", RULES)
thorough = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


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


# The toll: 2 * (n - 50)^2 if LAV < 40 and n > 50.


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


# Accidents.


def accident_minutes(rows: list[Row], rules: Rules, seg: int = 10, dir: int = 0) -> set[int]:
    """The minutes 1..12 that are accident minutes of a segment, as probing vehicles learn them."""
    probes = [
        at(10**6 + m, 60 * m, seg, lane=3, dir=dir, pos=seg * 5280 + 200 + m) for m in range(1, 13)
    ]
    found = answers([*rows, *probes], rules)
    alerts = [answer for answer in found if answer[0] == 1 and answer[2] > 10**6]
    assert all(alert[3] == seg for alert in alerts)
    return {time // 60 for _, time, _, _ in alerts}


def standing(vid: int, first: int, reports: int = 4, seg: int = 10, **how: int) -> list[Row]:
    """Reports every 30 s from one place, speed 0."""
    return [at(vid, first + 30 * k, seg, **{"spd": 0, **how}) for k in range(reports)]


def test_paper_an_accident_lasts_while_two_are_stopped() -> None:
    # Fourth reports at 90, stopped in [90, 120).
    assert accident_minutes(standing(1, 0) + standing(2, 0), "paper") == {2}
    # [90, 120) and [119, 149) share second 119; [120, 150) would share none.
    assert accident_minutes(standing(1, 0) + standing(2, 29), "paper") == {2}
    assert accident_minutes(standing(1, 0) + standing(2, 30), "paper") == set()
    # Last reports at 300, stopped in [90, 330): minutes 2 to 6.
    assert accident_minutes(standing(1, 0, 11) + standing(2, 0, 11), "paper") == {2, 3, 4, 5, 6}
    assert accident_minutes(standing(1, 0, 3) + standing(2, 0, 9), "paper") == set()


def test_paper_the_30_s_after_the_last_report_may_cross_a_minute() -> None:
    # [100, 130) for both: seconds 120..129 are in minute 3.
    both = standing(1, 10) + standing(2, 10)
    assert accident_minutes(both, "paper") == {2, 3}
    # From a report at 120 on the accident ends with second 119; at 121 with 120.
    for time, minutes in {107: {2}, 119: {2}, 120: {2}, 121: {2, 3}}.items():
        elsewhere, same_place = at(1, time, pos=52800), at(1, time, spd=0)
        assert accident_minutes([*both, elsewhere], "paper") == minutes
        assert accident_minutes([*both, same_place], "paper") == minutes  # starts a trip
    # [90, 120) ends exactly at the border.
    assert accident_minutes(standing(1, 0) + standing(2, 10), "paper") == {2}


def test_paper_a_new_trip_needs_four_reports_again() -> None:
    first = standing(1, 0)  # stopped in [90, 120)
    again = [at(1, 157 + 30 * k, spd=0) for k in range(4)]  # stopped in [247, 277)
    other = standing(2, 30, 9)  # stopped in [120, 300)
    assert accident_minutes(first + again[:3] + other, "paper") == set()
    assert accident_minutes(first + again + other, "paper") == {5}


def test_the_place_is_expressway_lane_position_and_direction() -> None:
    for rules in RULES:
        for how in ({"lane": 2}, {"pos": 52801}, {"dir": 1}, {"xway": 1}):
            apart = standing(1, 0, 9) + standing(2, 0, 9, **how)
            assert accident_minutes(apart, rules) == set()
        assert accident_minutes(standing(1, 0, 9) + standing(2, 0, 9), rules) != set()
        assert accident_minutes(standing(1, 0, 9) + standing(2, 0, 9), rules, dir=1) == set()


@every_rule_set
def test_one_vehicle_makes_no_accident_with_itself(rules: Rules) -> None:
    again = [row._replace(time=row.time + 300) for row in standing(1, 0, 5, lane=0)]
    assert accident_minutes(standing(1, 0, 5, lane=0) + again, rules) == set()


def test_lanes_and_speeds_at_which_a_vehicle_is_stopped() -> None:
    def accident(rules: Rules, **how: int) -> bool:
        rows = standing(1, 0, **how) + standing(2, 0, **how)
        return 2 in accident_minutes(rows, rules)

    assert [accident(rules, lane=0) for rules in RULES] == [False, True, True]
    # Under walmart only the first report on lane 4 is not ignored.
    assert [accident(rules, lane=4) for rules in RULES] == [False, True, False]
    assert [accident(rules, spd=5) for rules in RULES] == [True, False, True]


def test_brandeis_stationary_reports_0_to_30_s_apart() -> None:
    # Stationary reports at 90 and 90; at 90 and 120, which is in minute 3; at 90 and 121.
    assert accident_minutes(standing(1, 0) + standing(2, 0), "brandeis") == {2}
    assert accident_minutes(standing(1, 0) + standing(2, 30), "brandeis") == {3}
    assert accident_minutes(standing(1, 0) + standing(2, 31), "brandeis") == set()
    # Both at 100, and nothing afterwards: minute 2 alone.
    assert accident_minutes(standing(1, 10) + standing(2, 10), "brandeis") == {2}
    # Both at 90, 120, ..., 240: minutes 2 to 5.
    assert accident_minutes(standing(1, 0, 9) + standing(2, 0, 9), "brandeis") == {2, 3, 4, 5}


def test_brandeis_a_report_in_between_breaks_the_chain() -> None:
    rows = standing(1, 0) + standing(2, 0)
    assert accident_minutes([*rows, at(1, 45, 11)], "brandeis") == set()
    assert accident_minutes([*rows, at(1, 45, 11, xway=1)], "brandeis") == {2}


def test_brandeis_does_not_join_two_accidents_of_a_place() -> None:
    # One stands throughout, the other's stationary reports are at 90 and at 390. Reports 0 to 30 s
    # after those: 90 and 120 (minutes 2 and 3), 390 and 420 (minutes 7 and 8).
    rows = standing(1, 0, 20) + standing(2, 0) + standing(2, 300)
    assert accident_minutes(rows, "brandeis") == {2, 3, 7, 8}


FROM_MINUTE = {m: set(range(m, 13)) for m in range(1, 13)}


def test_walmart_an_accident_ends_with_the_minute_before_a_report_elsewhere() -> None:
    both = standing(1, 0) + standing(2, 0)  # fourth reports at 90
    assert accident_minutes(both, "walmart") == FROM_MINUTE[2]  # vanished: for ever
    assert accident_minutes([*both, at(2, 299, pos=52800)], "walmart") == {2, 3, 4}
    assert accident_minutes([*both, at(1, 300, pos=52800)], "walmart") == {2, 3, 4, 5}
    assert accident_minutes([*both, at(1, 300, lane=2)], "walmart") == {2, 3, 4, 5}
    assert accident_minutes([*both, at(1, 300, 77, pos=52900)], "walmart") == FROM_MINUTE[2]
    # Lane 0 after more than 60 s is a new trip, which never differs.
    new_trip = [at(1, 300, lane=0, pos=52800), at(1, 330, pos=52801)]
    assert accident_minutes(both + new_trip, "walmart") == FROM_MINUTE[2]
    # The other direction is another vehicle, as it were.
    assert accident_minutes([*both, at(1, 300, dir=1, pos=52800)], "walmart") == FROM_MINUTE[2]


def test_walmart_stops_with_any_gap() -> None:
    slow = [at(1, time) for time in (0, 100, 130, 500)]  # the fourth in minute 9
    assert accident_minutes(slow + standing(2, 0), "walmart") == FROM_MINUTE[9]
    assert accident_minutes(slow + standing(2, 0), "paper") == set()
    # A vehicle that vanished long ago is still there.
    assert accident_minutes(standing(1, 0) + standing(2, 400), "walmart") == FROM_MINUTE[9]


def test_walmart_knows_only_the_first_accident_of_a_segment() -> None:
    first = [*standing(1, 0), *standing(2, 0), at(1, 240, pos=52800)]  # minutes 2 to 4
    second = standing(3, 300, pos=52900 + 7) + standing(4, 300, pos=52900 + 7)  # from 390
    elsewhere = standing(5, 300, seg=11) + standing(6, 300, seg=11)
    assert accident_minutes(second, "walmart") == FROM_MINUTE[7]
    assert accident_minutes(first + second, "walmart") == {2, 3, 4}
    assert accident_minutes(first + elsewhere, "walmart", seg=11) == FROM_MINUTE[7]
    # An accident within one minute has no minutes, and is the first all the same.
    short = [*standing(1, 0), *standing(2, 0), at(1, 119, pos=52800)]
    assert accident_minutes(short + second, "walmart") == set()
    # One that leaves in the second in which the other would be stopped makes no accident.
    missed = [*standing(1, 0), *standing(2, 60), at(1, 150, pos=52800)]
    assert accident_minutes(missed + second, "walmart") == FROM_MINUTE[7]
    # A second later it does, and that accident is over with its minute.
    met = [*standing(1, 0), *standing(2, 60), at(1, 151, pos=52800)]
    assert accident_minutes(met + second, "walmart") == set()


def test_walmart_accidents_of_one_second_are_all_the_first() -> None:
    # Fourth reports at 90, 120, 120. Vehicle 1 leaves at 200 (minute 4), 2 at 400 (minute 7):
    # (1, 2) and (1, 3) have minute 3; (2, 3) has minutes 3 to 6.
    rows = [*standing(1, 0), *standing(2, 30), *standing(3, 30)]
    rows += [at(1, 200, pos=52800), at(2, 400, pos=52800)]
    assert accident_minutes(rows, "walmart") == {3, 4, 5, 6}
    # With fourth reports at 90, 119, 120 only (1, 2) is the first: minutes 2 and 3.
    rows = [*standing(1, 0), *standing(2, 29), *standing(3, 30), at(1, 200, pos=52800)]
    assert accident_minutes(rows, "walmart") == {2, 3}


# Alerts and exemption.


def wreck(seg: int, dir: int = 0) -> list[Row]:
    """An accident whose minute 2 is an accident minute under every rule set."""
    return standing(100 + seg, 0, seg=seg, dir=dir) + standing(200 + seg, 0, seg=seg, dir=dir)


def alert(rows: list[Row], rules: Rules, seg: int, dir: int = 0) -> list[int]:
    """The segments that a vehicle in `seg` is alerted of at minute 3."""
    found = answers([*rows, at(7, 125, seg, dir=dir, lane=2)], rules)
    assert (0, 7, 125) in [answer[:3] for answer in found]  # the toll notification, always
    return [answer[3] for answer in found if answer[:3] == (1, 125, 7)]


@every_rule_set
def test_an_accident_is_told_four_segments_upstream(rules: Rules) -> None:
    east, west = wreck(12), wreck(12, dir=1)
    told = {seg for seg in range(100) if alert(east, rules, seg)}
    assert told == {8, 9, 10, 11, 12}
    assert all(alert(east, rules, seg) == [12] for seg in told)
    assert not any(alert(east, rules, seg, dir=1) for seg in range(100))
    assert {seg for seg in range(100) if alert(west, rules, seg, dir=1)} == {12, 13, 14, 15, 16}


@every_rule_set
def test_the_road_ends_at_segments_0_and_99(rules: Rules) -> None:
    assert {seg for seg in range(100) if alert(wreck(99), rules, seg)} == {95, 96, 97, 98, 99}
    assert alert(wreck(99), rules, 97) == [99]
    assert {seg for seg in range(100) if alert(wreck(0, 1), rules, seg, 1)} == {0, 1, 2, 3, 4}
    assert not any(alert(wreck(0), rules, seg) for seg in range(1, 100))


@every_rule_set
def test_the_nearest_accident_downstream_is_named(rules: Rules) -> None:
    east, west = wreck(11) + wreck(13), wreck(11, 1) + wreck(13, 1)
    assert [alert(east, rules, seg) for seg in (10, 11, 12, 13, 14)] == [[11], [11], [13], [13], []]
    assert [alert(west, rules, seg, 1) for seg in (10, 11, 12, 13, 14)] == [
        *([], [11], [11], [13], [13])
    ]


@every_rule_set
def test_an_accident_in_the_five_segments_makes_the_toll_0(rules: Rules) -> None:
    # 53 vehicles in minute 2 in segments 10 and 7 of expressway 0 and in 10 of expressway 1.
    rows = [*wreck(12), *crowd(53, 60, 10), *crowd(53, 60, 10, xway=1)]
    rows += [row._replace(vid=row.vid + 500) for row in crowd(53, 60, 7)]
    rows += [at(1, 120, 10), at(2, 120, 7), at(3, 120, 10, xway=1)]
    assert notified(rows, rules, 1) == [(120, 30, 0)]
    assert notified(rows, rules, 2) == [(120, 30, 18)]
    assert notified(rows, rules, 3) == [(120, 30, 18)]


@every_rule_set
def test_an_accident_lies_where_its_position_is(rules: Rules) -> None:
    rows = standing(1, 0, seg=50, pos=52800) + standing(2, 0, seg=51, pos=52800)
    assert alert(rows, rules, 10) == [10]
    assert alert(rows, rules, 50) == []


# The journeys of travel time: days 7, 14, ..., 70 have DOW 5.

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


# Input.

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


# What holds of every input.


def accepted(rows: list[Row]) -> list[Row]:
    return parse(to_text(rows))[0]


def answer_time(answer: tuple[int, ...]) -> int:
    return answer[2] if answer[0] == 0 else answer[1]


@thorough
@given(texts())
def test_what_is_accepted_is_accepted_again(text: str) -> None:
    rows, rejects = parse(text)
    assert parse(to_text(rows)) == (rows, [])
    assert len(rows) + len(rejects) == text.count("\n") + (text[-1:] not in ("", "\n"))


@thorough
@given(scenarios())
def test_history_is_the_same_under_all_rules(made: Scenario) -> None:
    rows = accepted(made.rows)
    historical = [
        [a for a in answers(rows, rules, made.tolls, made.segment_history) if a[0] >= 3]
        for rules in RULES
    ]
    assert historical[0] == historical[1] == historical[2]
    assert len(historical[0]) == sum(row.type >= 3 for row in rows)


@every_rule_set
@thorough
@given(inputs(), st.integers(0, 99))
def test_the_order_inside_a_second_does_not_matter(
    rules: Rules, rows: list[Row], seed: int
) -> None:
    again = permuted_within_seconds(rows, seed)
    assert Counter(again) == Counter(rows)
    assert answers(accepted(again), rules) == answers(accepted(rows), rules)


@every_rule_set
@thorough
@given(inputs(), st.data())
def test_nothing_has_to_be_taken_back(rules: Rules, rows: list[Row], data: st.DataObject) -> None:
    rows = accepted(rows)
    end = data.draw(st.sampled_from(sorted({row.time for row in rows})))
    so_far = answers([row for row in rows if row.time <= end], rules)
    assert so_far == [found for found in answers(rows, rules) if answer_time(found) <= end]


@every_rule_set
@thorough
@given(inputs())
def test_east_and_west_are_mirror_images(rules: Rules, rows: list[Row]) -> None:
    rows = accepted(rows)
    mirror = [
        row._replace(dir=1 - row.dir, seg=99 - row.seg, pos=527_999 - row.pos)
        if row.type == 0
        else row
        for row in rows
    ]
    expected = [
        (1, time, vid, 99 - seg)
        for kind, time, vid, seg, *_ in (found for found in answers(rows, rules))
        if kind == 1
    ]
    found = answers(mirror, rules)
    assert sorted(expected) == [answer for answer in found if answer[0] == 1]
    assert [a for a in answers(rows, rules) if a[0] != 1] == [a for a in found if a[0] != 1]


@every_rule_set
@thorough
@given(inputs())
def test_whole_minutes_later_gives_the_same_answers(rules: Rules, rows: list[Row]) -> None:
    rows = accepted(rows)
    later = answers(shifted(rows, 6000), rules)
    assert Counter(answer_time(a) - 6000 for a in later) == Counter(
        answer_time(a) for a in answers(rows, rules)
    )
    assert Counter(a[3:] for a in later) == Counter(a[3:] for a in answers(rows, rules))


@thorough
@given(inputs())
def test_paper_expressways_can_be_worked_on_apart(rows: list[Row]) -> None:
    reports = [row for row in accepted(rows) if row.type == 0]
    apart = [answers([row for row in reports if row.xway == xway], "paper") for xway in (0, 1)]
    assert sorted(apart[0] + apart[1]) == answers(reports, "paper")


def test_scenarios_hit_the_rules() -> None:
    hits: Counter[tuple[str, str]] = Counter()
    for seed in range(6):
        made = scenario(seed)
        assert made == scenario(seed)
        rows, rejects = parse(made.text)
        hits["all", "rejects"] += len(rejects)
        hits["all", "implausible"] += sum(row.spd in (-5, 200) for row in rows)
        for rules in RULES:
            found = answers(rows, rules, made.tolls, made.segment_history)
            hits[rules, "toll"] += sum(a[0] == 0 and a[4] > 0 for a in found)
            hits[rules, "lav 40"] += sum(a[0] == 0 and a[3] == 40 for a in found)
            hits[rules, "no lav"] += sum(a[0] == 0 and a[3] in (0, -1) for a in found)
            hits[rules, "alert"] += sum(a[0] == 1 for a in found)
            hits[rules, "balance"] += sum(a[0] == 2 and a[4] > 0 for a in found)
            hits[rules, "spent"] += sum(a[0] == 3 and a[3] > 0 for a in found)
            hits[rules, "journey"] += sum(a[0] == 4 and a[4] > 0 for a in found)
    assert all(hits[rules, hit] >= 20 for rules, hit in hits), hits
    assert len(hits) == 2 + 3 * 7
