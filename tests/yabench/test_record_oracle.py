"""The oracle of records finds borders and counts changes as its slow definition does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yabench.answers import Answer
from yabench.bindings import Bag, binding_of
from yabench.judge import judge
from yabench.record_oracle import SqlOracle
from yabench.reports import expected_reports
from yabench.weather import generate
from yabench.windows import Scope, Windowing

from tests.reference import yabench as slow

pytest.importorskip("duckdb")
Q1 = "SELECT station AS s, observation AS o, time AS first_ms, time AS last_ms FROM items"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(5, 12), st.integers(0, 99), st.data())
def test_the_fast_search_for_borders_finds_what_the_slow_one_finds(
    stations: int, slide: int, seed: int, data: st.DataObject
) -> None:
    records = generate(stations, 7, 30, seed)
    oracle = SqlOracle(records, Q1)
    window = Windowing(10, slide).window(data.draw(st.integers(1, 3)))
    rows = [
        {"time": int(t), "s": float(s), "o": float(o)}
        for t, s, o in zip(records.time, records.station, records.observation, strict=True)
    ]
    drawn = data.draw(st.lists(st.sampled_from(rows), max_size=5, unique_by=lambda row: row["o"]))
    actual = [{"s": row["s"], "o": row["o"]} for row in drawn]
    answers = [Answer(Bag(map(binding_of, actual)), window.end)]
    found = judge(oracle, Windowing(10, slide), answers, gracious=True).windows[window.number - 1]

    def query(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"s": row["s"], "o": row["o"]} for row in content]

    def pairs(expected: list[Any], given_rows: list[Any]) -> int:
        return len({row["o"] for row in expected} & {row["o"] for row in given_rows})

    original, slow.most_pairs = slow.most_pairs, pairs  # unique rows need no search
    try:
        best = slow.best_borders(rows, query, actual, window.scope, slide)
    finally:
        slow.most_pairs = original
    assert (found.start + found.start_shift_ms, found.end + found.end_shift_ms) == best


@pytest.mark.parametrize("policy", ["content-change", "window-close"])
def test_a_wrong_engine_is_not_searched_for_shifts_where_that_takes_minutes(policy: str) -> None:
    """Each of 60,000 pairs of borders would be evaluated, as changes or as averages."""
    records = generate(50, 1000, 7000, 4)
    average = (
        "SELECT scope, avg(value) AS avg FROM scopes JOIN items "
        "ON time >= start_ms AND time < end_ms GROUP BY scope"
    )
    oracle = SqlOracle(records, Q1 if policy == "content-change" else average)
    wrong = [Answer(oracle.results(Scope(0, 4000)), 5000), Answer(Bag(), 10_000)]
    found = judge(oracle, Windowing(5000, 5000, policy), wrong)
    assert not found.right
    assert "shifted" not in found.finding


def test_borders_are_found_where_numbers_have_rounding_errors() -> None:
    records = generate(6, 7, 40, 4)
    query = Q1.replace("observation AS o", "observation AS o, value AS v")
    oracle = SqlOracle(records, query)
    shifted = Bag(
        binding._replace(numbers=tuple((n, v * (1 + 1e-12)) for n, v in binding.numbers))
        for binding in oracle.results(Scope(13, 23))
    )
    found = judge(oracle, Windowing(10, 10), [Answer(shifted, 20)], gracious=True).windows[1]
    assert found.right
    assert (found.start_shift_ms, found.end_shift_ms) != (0, 0)


def test_whole_contents_are_counted_as_if_each_change_were_evaluated() -> None:
    records = generate(6, 10, 60, 4)
    fast = SqlOracle(records, Q1)
    windowing = Windowing(20, 10, "content-change")
    reports = []
    for time_ms in fast.times:
        start = max(0, (time_ms // 10 + 1) * 10 - 20)
        reports.append(Answer(fast.results(Scope(start, time_ms + 1)), time_ms))
    for window in windowing.windows(fast.times[-1]):
        total: Bag = Bag()
        for report in reports:
            if window.opened <= (report.named_ms or 0) < window.end:
                total.update(report.bindings)
        contents = expected_reports(fast, windowing, window, window.scope)
        first = window.opened in fast.times or not fast.items(
            Scope(max(0, window.scope.start - 10), window.scope.start)
        )
        if first:
            assert contents == total
