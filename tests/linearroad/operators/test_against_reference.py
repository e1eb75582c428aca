"""The query gives the reference's answers for every rule set and every order of rows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from linearroad.schema import REASONS

import xstream as xs
from tests.linearroad.engine import history_of, run_rows
from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import (
    Scenario,
    permuted_within_seconds,
    scenario,
    scenarios,
)

RULES = ("paper", "brandeis", "walmart")


def expected(case: Scenario, rules: str) -> tuple[list, list, int]:
    rows, rejects = reference.parse(case.text)
    answers = reference.answers(rows, rules, case.tolls, case.segment_history)
    refused = sorted((reject.line, REASONS.index(reject.reason)) for reject in rejects)
    return answers, refused, reference.implausible(rows)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_bulk_traffic_is_answered_as_the_reference_does(rules: str, seed: int) -> None:
    case = scenario(seed)
    history = history_of(case.tolls, case.segment_history)
    assert run_rows(case.rows, history, rules) == expected(case, rules)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
def test_no_operator_leaves_its_arrays(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In debug mode, where kernels and all their helpers check indices and divisions."""
    monkeypatch.setenv("XSTREAM_DEBUG", "1")
    case = scenario(0)
    history = history_of(case.tolls, case.segment_history)
    assert run_rows(case.rows, history, rules) == expected(case, rules)


ADVERSARIAL = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def check_adversarial(rules: str, case: Scenario) -> None:
    history = history_of(case.tolls, case.segment_history)
    assert run_rows(case.rows, history, rules) == expected(case, rules)


@pytest.mark.parametrize("rules", RULES)
@given(case=scenarios())
@settings(max_examples=60, **ADVERSARIAL)
def test_adversarial_traffic_is_answered_as_the_reference_does(rules: str, case: Scenario) -> None:
    check_adversarial(rules, case)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rules", RULES)
@given(case=scenarios())
@settings(max_examples=1000, **ADVERSARIAL)
def test_thousands_of_adversarial_inputs_are_answered(rules: str, case: Scenario) -> None:
    check_adversarial(rules, case)


@pytest.mark.parametrize("rules", RULES)
def test_the_order_of_rows_within_a_second_does_not_matter(rules: str) -> None:
    case = scenario(101)
    good, _ = reference.parse(case.text)
    history = history_of(case.tolls, case.segment_history)
    first = run_rows(good, history, rules)[0]
    for seed in range(3):
        assert run_rows(permuted_within_seconds(good, seed), history, rules)[0] == first


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_where_the_input_is_cut_does_not_matter(chunk: int) -> None:
    case = scenario(102)
    history = history_of(case.tolls, case.segment_history)
    rows = case.rows[:1500]
    assert run_rows(rows, history, chunk=chunk) == run_rows(rows, history)


def test_schedulers_and_managers_agree() -> None:
    case = scenario(103)
    history = history_of(case.tolls, case.segment_history)
    first = run_rows(case.rows, history)
    for scheduler, memory in itertools.product(xs.SCHEDULER_NAMES, xs.MANAGER_NAMES):
        found = run_rows(case.rows, history, scheduler=scheduler, memory=memory)
        assert found == first, (scheduler, memory)


@pytest.mark.parametrize("rules", RULES)
def test_the_last_seconds_that_a_time_can_say(rules: str) -> None:
    case = scenario(105)
    good, _ = reference.parse(case.text)
    later = 2**31 - 1 - good[-1].time
    rows = [row._replace(time=row.time + later) for row in good]
    answers = run_rows(rows, history_of(case.tolls, case.segment_history), rules)[0]
    assert answers == reference.answers(rows, rules, case.tolls, case.segment_history)


@pytest.mark.parametrize("rules", RULES)
def test_tolls_beyond_32_bits(rules: str) -> None:
    crowd, me = 40_000, 7

    def report(time: int, vid: int, seg: int, pos: int) -> reference.Row:
        return reference.Row(0, time, vid, 10, 0, 1, 0, seg, pos)

    rows = [report(60, vid, 5, 5 * 5280 + vid % 5280) for vid in range(100, 100 + crowd)]
    rows += [report(120 + 30 * k, me, 5 + k, (5 + k) * 5280 + 10) for k in range(3)]
    rows.append(reference.Row(2, 200, me, qid=1))
    answers = run_rows(rows, history_of([], []), rules)[0]
    assert answers == reference.answers(rows, rules)
    assert any(2 * (crowd - 50) ** 2 in row for row in answers if row[0] == 2)


def test_without_history_travel_times_are_unanswerable_and_expenditure_is_nothing() -> None:
    case = scenario(104)
    rows, _ = reference.parse(case.text)
    answers = run_rows(case.rows, history_of([], []))[0]
    assert answers == reference.answers(rows, "paper")
    assert {row[3:] for row in answers if row[0] == 4} == {(-1, -1)}
    assert {row[3] for row in answers if row[0] == 3} == {0}
