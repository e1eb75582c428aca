"""The Linear Road reference by cases worked out by hand: stopped vehicles, accidents and alerts."""

from __future__ import annotations

from tests.reference.linearroad import RULES, Row, Rules, answers
from tests.reference.linearroad_rows import (
    at,
    crowd,
    every_rule_set,
    notified,
)


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
