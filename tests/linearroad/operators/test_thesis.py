"""The query gives the reference's answers by the rules of the thesis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from linearroad import network
from linearroad.rowforms import THESIS
from linearroad.rules import Tariff, rules_named
from linearroad.run.feed import RAW
from linearroad.schema import ANSWERS, REASONS
from linearroad.tables.history import History

import xstream as xs
from tests.linearroad.engine import history_of
from tests.reference import linearroad_thesis as reference
from tests.reference.linearroad_thesis_strategies import Scenario, in_order, scenario, scenarios

Answers = list[tuple[int, ...]]


def thesis_answer(second: int, kind: int, who: int, value: int, amount: int) -> tuple[int, ...]:
    """An answer of the query as (second, Type, f1, f2, f3, f4)."""
    if kind == 0:
        return (second, kind, who, amount, value, 0)
    if kind == 1:
        return (second, kind, who, amount, value % 100, value // 100)
    if kind == 4:
        return (second, kind, who, value, amount, 0)
    return (second, kind, who, amount, 0, 0)


def answers_of(time: int, _: bool, *columns: xs.SigSeg) -> Answers:
    lists = (np.asarray(column).tolist() for column in columns)
    return [thesis_answer(time, *answer) for answer in zip(*lists, strict=True)]


def chunks(rows: np.ndarray, chunk: int):
    wide = np.stack(THESIS.columns(tuple(rows.T))).T if len(rows) else np.zeros((0, 15), np.int32)
    times = THESIS.times(tuple(wide.T), 0)
    end = int(times[-1]) if len(rows) else -1

    def parts():
        for at in range(0, len(wide), chunk):
            part = np.ascontiguousarray(wide[at : at + chunk].T)
            lines = np.arange(at + 1, at + 1 + part.shape[1], dtype=np.int64)
            upto = end if at + chunk >= len(wide) else -1
            yield xs.SigSeg(part.reshape(-1)), xs.SigSeg(lines), upto

    return parts


def run_files(
    files: Sequence[Sequence[tuple[int, ...]]], history: History, tariff: Tariff,
    scheduler: str = "df", memory: str = "refcount-lazy", chunk: int = 1000, threads: int = 1,
) -> tuple[Answers, list[tuple[int, int]]]:  # fmt: skip
    """Sorted answers, and sorted rejects as (line, reason number); a part for each file."""
    query = xs.Query("linear road")
    built = network.Network(query, rules_named("thesis", tariff))
    money, tables, refused = [], [], []
    for number, rows in enumerate(files):
        table = np.array([tuple(row) for row in rows], np.int32).reshape(-1, 9)
        source = query.source(xs.io.iterable(chunks(table, chunk), out=RAW))
        seconds = built.seconds(source, f" {number}", THESIS.number)
        part = built.part(seconds, history, number, f" {number}")
        money.append(part.money)
        tables += [stream.collect() for stream in part.tables]
        refused += [stream.select("reject").collect() for stream in (seconds, part.reports)]
    tables.append(built.balances(money).select(*ANSWERS).collect())
    done = query.run(scheduler, memory, threads=threads)
    answers = [row for sink in tables for second in done[sink] for row in answers_of(*second)]
    rejects = [row for sink in refused for seg in done[sink] for row in np.asarray(seg).tolist()]
    return sorted(answers), sorted(rejects)


def run_case(case: Scenario, **options) -> tuple[Answers, list[tuple[int, int]]]:
    rows = [row.row() for row in case.rows]
    history = history_of([], case.segment_history)
    return run_files([rows], history, Tariff(*case.constants), **options)


def expected(case: Scenario) -> tuple[Answers, list[tuple[int, int]]]:
    rows, rejects = reference.parse(case.text)
    refused = sorted((reject.line, REASONS.index(reject.reason)) for reject in rejects)
    return reference.answers(rows, case.segment_history, case.constants), refused


@pytest.mark.parametrize("seed", range(6))
def test_bulk_traffic_is_answered_as_the_reference_does(seed: int) -> None:
    case = scenario(seed)
    assert run_case(case) == expected(case)


def test_bulk_traffic_has_some_of_everything() -> None:
    """Tolls, halved tolls, alerts, credits; otherwise the tests above could not fail."""
    told = [answer for seed in range(6) for answer in expected(scenario(seed))[0]]
    kinds = {kind: [answer for answer in told if answer[1] == kind] for kind in range(5)}
    assert all(len(answers) > 20 for answers in kinds.values())
    tolls = {answer[3] for answer in kinds[0]}
    assert len(tolls) > 10
    assert any(answer[3] < 0 for answer in kinds[2])  # only credits make a balance negative
    assert any(answer[3] > 500 for answer in kinds[2])


EXAMPLES = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


@given(case=scenarios())
@settings(max_examples=80, **EXAMPLES)
def test_adversarial_traffic_is_answered_as_the_reference_does(case: Scenario) -> None:
    assert run_case(case) == expected(case)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(case=scenarios())
@settings(max_examples=1500, **EXAMPLES)
def test_thousands_of_adversarial_inputs_are_answered(case: Scenario) -> None:
    assert run_case(case) == expected(case)


@pytest.mark.slow
def test_no_operator_leaves_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """In debug mode, where kernels and all their helpers check indices and divisions."""
    monkeypatch.setenv("XSTREAM_DEBUG", "1")
    case = scenario(1)
    assert run_case(case) == expected(case)


@pytest.mark.slow
@pytest.mark.parametrize("lane", [1, 4])
def test_many_expressways_may_begin_in_one_second(
    lane: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables grow at once to the last of them, whichever way its vehicle goes."""
    monkeypatch.setenv("XSTREAM_DEBUG", "1")
    rows = [reference.Report(0, 5, 50, xway, 7, 0, lane, lane // 4) for xway in range(7)]
    case = Scenario(rows, reference.to_text(rows), [], reference.Constants())
    assert run_case(case) == expected(case)


@pytest.mark.slow
def test_an_exit_looks_ahead_of_all_segments_with_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XSTREAM_DEBUG", "1")
    rows = [
        reference.Report(time, 5, 50, xway, 97, 0, lane, 1)
        for time, lane in ((0, 4), (30, 7))
        for xway in range(3)
    ]
    case = Scenario(rows, reference.to_text(rows), [], reference.Constants())
    assert run_case(case) == expected(case)


@pytest.mark.parametrize("threads", [1, 2])
def test_files_share_the_accounts(threads: int) -> None:
    """A file for each expressway: the discount depends on the charges of both."""
    case = scenario(2)
    good, _ = reference.parse(case.text)
    files = [
        [row.row() for row in good if (row.xway if row.xway >= 0 else row.qid) % 2 == xway]
        for xway in (0, 1)
    ]
    history = history_of([], case.segment_history)
    found = run_files(files, history, Tariff(*case.constants), threads=threads)[0]
    assert found == reference.answers(good, case.segment_history, case.constants)
    apart = [run_files([rows], history, Tariff(*case.constants))[0] for rows in files]
    assert sorted(itertools.chain(*apart)) != found


def test_the_order_of_rows_within_a_second_does_not_matter() -> None:
    case = scenario(3)
    good, _ = reference.parse(case.text)
    first = run_case(case)[0]
    for seed in range(3):
        assert run_case(case._replace(rows=in_order(good, seed)))[0] == first


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
def test_where_the_input_is_cut_does_not_matter(chunk: int) -> None:
    case = scenario(4)
    short = case._replace(rows=case.rows[:1500])
    assert run_case(short, chunk=chunk) == run_case(short)


def test_schedulers_and_managers_agree() -> None:
    case = scenario(5)
    first = run_case(case)
    for scheduler in xs.SCHEDULER_NAMES:
        assert run_case(case, scheduler=scheduler) == first
    for memory in xs.MANAGER_NAMES:
        assert run_case(case, memory=memory) == first
