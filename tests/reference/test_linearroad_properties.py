"""The Linear Road reference by cases worked out by hand: what holds for all traffic."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference.linearroad import RULES, Row, Rules, answers, parse, to_text
from tests.reference.linearroad_rows import (
    every_rule_set,
)
from tests.reference.linearroad_strategies import (
    Scenario,
    inputs,
    permuted_within_seconds,
    scenario,
    scenarios,
    shifted,
)
from tests.reference.linearroad_texts import texts

thorough = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


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
