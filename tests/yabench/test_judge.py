"""Windows are judged as the specification says, compared with its slow definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yabench.answers import Answer
from yabench.bindings import Bag, binding_of
from yabench.judge import judge
from yabench.oracle import Oracle
from yabench.policy import judge_any
from yabench.windows import Scope, Windowing

import xstream as xs
from tests.reference import yabench as slow

Item = dict[str, Any]


class ListOracle(Oracle):
    """Evaluates a Python function over a list of items."""

    def __init__(self, items: list[Item], query: Any, monotone: bool = True) -> None:
        self.all, self.query, self.monotone = items, query, monotone
        self.times = sorted({item["time"] for item in items})
        self.variables = ()

    def content(self, scope: Scope) -> list[Item]:
        return [item for item in self.all if scope.start <= item["time"] < scope.end]

    def results(self, scope: Scope) -> Bag:
        return Bag(map(binding_of, self.query(self.content(scope))))

    def items(self, scope: Scope) -> int:
        return len(self.content(scope))


def values(content: list[Item]) -> list[dict[str, Any]]:
    return [{"v": item["value"]} for item in content]


def total(content: list[Item]) -> list[dict[str, Any]]:
    return [{"sum": sum(item["value"] for item in content)}]


ITEMS = st.lists(
    st.fixed_dictionaries({"time": st.integers(0, 30), "value": st.integers(1, 3).map(float)}),
    min_size=1,
    max_size=7,
)


@given(ITEMS, st.integers(1, 12), st.integers(1, 12), st.data())
def test_every_window_is_judged_as_the_slow_definition_judges_it(
    items: list[Item], size: int, slide: int, data: st.DataObject
) -> None:
    count = max(item["time"] for item in items) // slide + 1
    given_rows = data.draw(
        st.lists(st.lists(st.sampled_from([1.0, 2.0, 9.0]), max_size=3), max_size=count)
    )
    answers = [
        Answer(Bag(binding_of({"v": value}) for value in rows), (number + 1) * slide)
        for number, rows in enumerate(given_rows)
    ]
    windowing = Windowing(size, slide)
    oracle = ListOracle(items, values)
    strict = judge(oracle, windowing, answers)
    gracious = judge(oracle, windowing, answers, gracious=True)
    for number, (window, moved) in enumerate(zip(strict.windows, gracious.windows, strict=True)):
        scope = slow.scope_of(number + 1, size, slide)
        actual = [{"v": v} for v in given_rows[number]] if number < len(given_rows) else []
        expected = values(oracle.content(Scope(*scope)))
        assert (window.start, window.end) == scope
        assert (window.actual, window.expected) == (len(actual), len(expected))
        right = slow.precision_recall(expected, actual)
        assert (window.precision, window.recall) == pytest.approx(tuple(map(float, right)))
        best = slow.best_borders(items, values, actual, scope, slide)
        assert (moved.start + moved.start_shift_ms, moved.end + moved.end_shift_ms) == best
    assert strict.right == all(window.right for window in strict.windows)


@given(ITEMS, st.integers(1, 12), st.integers(1, 12), st.sampled_from([values, total]))
def test_an_engine_that_reports_each_change_is_right(
    items: list[Item], size: int, slide: int, query: Any
) -> None:
    """Replays the stream second by second and reports what a right engine would."""
    oracle = ListOracle(items, query, monotone=query is values)
    only_new = Windowing(size, slide, "content-change", only_new=True)
    whole = Windowing(size, slide, "content-change")
    new_reports, whole_reports = [], []
    last: Bag = Bag()
    before: list[Item] = []
    for time in range(only_new.last_index(oracle.times[-1]) * slide):
        start = max(0, (time // slide + 1) * slide - size)
        kept = [item for item in before if item["time"] >= start]
        now = oracle.content(Scope(start, time + 1))
        if now != before:  # what enters when others leave is one change
            found = Bag(map(binding_of, query(now)))
            whole_reports.append(Answer(found, time))
            known = Bag(map(binding_of, query(kept))) if query is values else last
            new_reports.append(Answer(found - known, time))
            last = found
        before = now
    assert judge(oracle, only_new, new_reports).right
    assert judge(oracle, whole, whole_reports).right


def items_at(*times: int) -> list[Item]:
    return [{"time": time, "value": float(time)} for time in times]


def answer(*found: float, at: int | None = None, arrival: float | None = None) -> Answer:
    return Answer(Bag(binding_of({"v": value}) for value in found), at, arrival)


def test_results_that_name_no_end_are_paired_by_order_of_arrival() -> None:
    oracle = ListOracle(items_at(1, 12, 25), values)
    late = [answer(1, arrival=10.5), answer(12, arrival=23), answer(25, arrival=39)]
    found = judge(oracle, Windowing(10, 10), late)
    assert found.right
    assert [window.delay_ms for window in found.windows] == [0.5, 3, 9]


def test_results_without_any_time_are_paired_by_their_order() -> None:
    oracle = ListOracle(items_at(1, 12, 25), values)
    assert judge(oracle, Windowing(10, 10), [answer(1), answer(12), answer(25)]).right
    assert not judge(oracle, Windowing(10, 10), [answer(12), answer(1), answer(25)]).right


def test_a_result_more_than_a_slide_late_belongs_to_no_window_of_its_own() -> None:
    oracle = ListOracle(items_at(1), values)
    found = judge(oracle, Windowing(10, 10), [answer(1, arrival=20.0)])
    assert (found.right, found.stray) == (False, 1)


def test_a_named_window_behind_the_stream_counts() -> None:
    oracle = ListOracle(items_at(1), values)
    found = judge(oracle, Windowing(10, 10), [answer(1, at=10), answer(1, at=30)])
    assert [(w.precision, w.recall) for w in found.windows] == [(1, 1), (1, 1), (0, 1)]


def test_a_border_may_move_by_a_whole_slide_and_no_further() -> None:
    oracle = ListOracle(items_at(1, 10, 20, 21, 40), values)
    whole = judge(oracle, Windowing(10, 10), [answer(1, 10, at=10)], gracious=True).windows[0]
    assert (whole.right, whole.end_shift_ms) == (True, 10)
    further = judge(oracle, Windowing(10, 10), [answer(1, 10, 20, at=10)], gracious=True)
    assert (further.windows[0].precision, further.windows[0].end_shift_ms) == (2 / 3, 10)


def test_non_empty_expects_nothing_of_a_window_without_items() -> None:
    oracle = ListOracle(items_at(1, 25), total, monotone=False)
    answers = [
        Answer(Bag([binding_of({"sum": 1})]), 10),
        Answer(Bag([binding_of({"sum": 25})]), 30),
    ]
    assert judge(oracle, Windowing(10, 10, "non-empty"), answers).right
    assert not judge(oracle, Windowing(10, 10), answers).right


def test_periodic_reports_the_content_of_the_active_window_so_far() -> None:
    oracle = ListOracle(items_at(1, 6, 12), values)
    answers = [answer(1, at=5), answer(1, 6, at=10), answer(12, at=15)]
    assert judge(oracle, Windowing(10, 10, "periodic", period_ms=5), answers).right


@pytest.mark.parametrize("period", [1, 4])
def test_a_report_before_the_start_of_a_short_window_is_of_nothing(period: int) -> None:
    oracle = ListOracle(items_at(0, 5), total, monotone=False)
    found = judge(oracle, Windowing(1, 3, "periodic", period_ms=period), [], gracious=True)
    assert all(window.actual == 0 for window in found.windows)
    strict = judge(oracle, Windowing(1, 3, "periodic", period_ms=period), [])
    for window, moved in zip(strict.windows, found.windows, strict=True):
        if window.start > window.end:
            assert (moved.start_shift_ms, moved.end_shift_ms) == (0, 0)


def test_a_value_that_was_only_rounded_otherwise_is_not_new() -> None:
    def rounded(items: list[Item]) -> list[dict[str, Any]]:
        return [{"avg": 0.1 * (1 + len(items) * 1e-15)}]

    oracle = ListOracle(items_at(3, 4, 12), rounded, monotone=False)
    once = [Answer(Bag([binding_of({"avg": 0.1})]), 3)]
    assert judge(oracle, Windowing(10, 10, "content-change", only_new=True), once).right


def test_a_report_that_was_lost_is_not_replaced_by_one_of_the_next_window() -> None:
    """Both windows report the same value; the report at 13 belongs to the change at 12."""
    oracle = ListOracle(items_at(3, 12), lambda items: [{"v": 1.0}] * bool(items), False)
    lossy = judge(oracle, Windowing(10, 10, "content-change"), [answer(1, at=13)])
    assert [window.recall for window in lossy.windows] == [0, 1]
    late = judge(oracle, Windowing(10, 10, "content-change"), [answer(1, at=11), answer(1, at=13)])
    assert late.right


def test_numbers_with_rounding_errors_are_expected_once() -> None:
    """The report at 12 belongs to the second window: the first has its own, rounded."""
    oracle = ListOracle(items_at(3, 12), lambda items: [{"v": 1 / 3}] * bool(items), False)
    reports = [answer(1 / 3 * (1 + 1e-12), at=3), answer(1 / 3, at=12)]
    found = judge(oracle, Windowing(10, 10, "content-change"), reports)
    assert [window.actual for window in found.windows] == [1, 1]
    assert found.right


def test_the_policy_of_unknown_answers_is_the_one_that_fits() -> None:
    oracle = ListOracle(items_at(1, 6, 12), values)
    windowing = Windowing(10, 10)
    closing = judge_any(oracle, windowing, [answer(1, 6, at=10), answer(12, at=20)])
    assert (closing.right, closing.windowing.policy) == (True, "window-close")
    late = judge_any(oracle, windowing, [answer(1, 6, at=11), answer(12, at=21)])
    assert (late.right, late.windowing.policy) == (True, "window-close")
    changes = judge_any(oracle, windowing, [answer(1, at=2), answer(6, at=7), answer(12, at=13)])
    assert (changes.right, changes.windowing.only_new) == (True, True)
    whole = judge_any(oracle, windowing, [answer(1, at=2), answer(1, 6, at=7), answer(at=10),
                                          answer(12, at=13)])  # fmt: skip
    assert (whole.right, whole.windowing.only_new) == (True, False)


def test_variables_with_other_names_are_taken_in_their_order() -> None:
    oracle = ListOracle(items_at(1), values)
    oracle.variables = ("v",)
    named = Answer(Bag([binding_of({"other": 1})]), 10, variables=("other",))
    assert judge(oracle, Windowing(10, 10), [named]).right


@pytest.mark.parametrize(
    ("size", "slide", "policy"), [(0, 1, "window-close"), (1, 0, "non-empty"), (1, 1, "sometimes"),
                                  (1, 1, "periodic")],
)  # fmt: skip
def test_windows_that_make_no_sense_are_refused(size: int, slide: int, policy: str) -> None:
    with pytest.raises(xs.InputError):
        Windowing(size, slide, policy)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([], "no bindings at all"),
        ([answer(1, at=10), answer(at=20), answer(25, at=30)], "no results although"),
        ([answer(1, at=10), answer(12, 1, at=20), answer(25, at=30)], "too many"),
        ([answer(at=10), answer(1, at=20), answer(12, at=30)], "shifted"),
        ([answer(1, at=10), answer(13, at=20), answer(25, at=30)], "values differ"),
        ([answer(1, at=10, arrival=45), answer(12, at=20), answer(25, at=30)], "late"),
        ([answer(1, at=10), answer(12, at=20), answer(25, at=30)], "All 3 windows are right."),
    ],
)
def test_the_finding_says_what_is_wrong(answers: list[Answer], words: str) -> None:
    found = judge(ListOracle(items_at(1, 12, 25), values), Windowing(10, 10), answers)
    assert words in found.finding
