"""Every window is judged as a judge that was written from the specification alone judges it."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yabench.answers import Answer
from yabench.bindings import Bag, binding_of, score
from yabench.columns import Columns
from yabench.judge import judge
from yabench.oracle import Oracle, SparqlOracle
from yabench.record_oracle import SqlOracle
from yabench.reports import expected_reports
from yabench.weather import Records, as_records, generate, rdf_of
from yabench.windows import Scope, Windowing

from tests.reference.yabench_judge import Benchmark, Item, Report, Row, Verdict, judged

np = pytest.importorskip("numpy")
pytest.importorskip("duckdb")
pytest.importorskip("pyoxigraph")
OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"


def above(content: list[Item]) -> list[Row]:
    return [{"sensor": i["station"], "obs": i["observation"]} for i in content if i["value"] > 50]


def average(content: list[Item]) -> list[Row]:
    values = [item["value"] for item in content if item["value"] > 50]
    return [{"avg": sum(values) / len(values) if values else 0.0}]


def pairs(content: list[Item]) -> list[Row]:
    return [
        {"sensor": a["station"], "ob1": a["observation"], "value1": a["value"],
         "obs": b["observation"]}
        for a in content for b in content
        if a["station"] == b["station"] and a["value"] > b["value"]
    ]  # fmt: skip


SQL = {
    above: "SELECT station AS sensor, observation AS obs, time AS first_ms, time AS last_ms "
    "FROM items WHERE value > 50",
    average: "SELECT scope, coalesce(avg(value), 0) AS avg FROM scopes LEFT JOIN items "
    "ON time >= start_ms AND time < end_ms AND value > 50 GROUP BY scope",
    pairs: "SELECT a.station AS sensor, a.observation AS ob1, a.value AS value1, b.observation "
    "AS obs, least(a.time, b.time) AS first_ms, greatest(a.time, b.time) AS last_ms "
    "FROM items a JOIN items b ON a.station = b.station AND a.value > b.value",
}
SPARQL = {
    above: "SELECT ?sensor ?obs { ?obs om:procedure ?sensor ; om:result ?r . "
    "?r om:floatValue ?value FILTER(?value > 50) }",
    average: "SELECT (AVG(?value) AS ?avg) { ?r om:floatValue ?value FILTER(?value > 50) }",
    pairs: "SELECT ?sensor ?ob1 ?value1 ?obs { ?ob1 om:procedure ?sensor ; om:result ?r1 . "
    "?r1 om:floatValue ?value1 . ?obs om:procedure ?sensor ; om:result ?r . "
    "?r om:floatValue ?value FILTER(?value1 > ?value) }",
}


class Numbers(SparqlOracle):
    """SPARQL over triples, with the numbers of stations and observations in place of their IRIs."""

    def results(self, scope: Scope) -> Bag:
        return as_records(super().results(scope))

    def items(self, scope: Scope) -> int:
        return super().items(scope) // 7


def items_of(records: Records) -> list[Item]:
    columns = (records.time, records.station, records.observation, records.value)
    names = ("time", "station", "observation", "value")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    items = [dict(zip(names, row, strict=True)) for row in rows]
    return [{**i, "station": float(i["station"]), "observation": float(i["observation"])}
            for i in items]  # fmt: skip


@st.composite
def reports_for(draw: Any, bench: Benchmark) -> list[Report]:
    """Results of an engine that is right at heart: some are shifted, lossy, doubled or late."""
    found = []
    step = bench.period if bench.policy == "periodic" else bench.slide
    for window in bench.windows():
        if draw(st.integers(0, 9)) == 0:
            continue
        shift = draw(st.sampled_from([0, 0, 0, 1, 2, -1, bench.slide]))
        start, end = max(0, window[0] + shift), max(0, window[1] + shift)
        rows = list(bench.expected(window, min(start, end), end))
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
            if rows:
                row = rows.pop(draw(st.integers(0, len(rows) - 1)))
                change = draw(st.sampled_from([1.0, 1 + 1e-12, 1 + 1e-7]))
                name = draw(st.sampled_from(sorted(row)))
                again = draw(st.integers(0, 2))
                rows += again * [{**row, name: row[name] * change}]
        named = window[1] if draw(st.integers(0, 3)) else None
        late = draw(st.integers(-step, 2 * step + 1))
        arrival = draw(st.sampled_from([None, window[1] + late, window[1] + 1]))
        found.append(Report(named, arrival, rows))
    return found


@st.composite
def benchmarks(draw: Any, policies: list[str]) -> tuple[Records, Benchmark]:
    interval = draw(st.integers(3, 9))
    records = generate(
        draw(st.integers(1, 4)), interval, interval + draw(st.integers(0, 25)),
        draw(st.integers(0, 10**6)),
    )  # fmt: skip
    query = draw(st.sampled_from([above, average, pairs]))
    policy = draw(st.sampled_from(policies))
    period = draw(st.integers(1, 12)) if policy == "periodic" else 0
    size, slide = draw(st.integers(1, 14)), draw(st.integers(1, 14))
    return records, Benchmark(
        items_of(records), query, query is not average, size, slide, policy,
        draw(st.booleans()), period,
    )  # fmt: skip


def answers_of(reports: list[Report], columns: bool) -> list[Answer]:
    """The results as the judge takes them, as multisets or as columns."""
    found = []
    for named, arrival, rows in reports:
        bag: Bag | Columns = Bag(map(binding_of, rows))
        if columns and rows:
            bag = Columns({name: column([row[name] for row in rows]) for name in rows[0]})
        found.append(Answer(bag, named, arrival))
    return found


def column(values: list[float]) -> Any:
    whole = all(value == int(value) for value in values)
    return np.array(values, np.int64 if whole else np.float64)


def assert_equal(
    oracle: Oracle, bench: Benchmark, reports: list[Report], gracious: bool, columns: bool
) -> None:
    windowing = Windowing(
        bench.size, bench.slide, bench.policy, bench.only_new, bench.period or None
    )
    found = judge(oracle, windowing, answers_of(reports, columns), gracious)
    expected, stray = judged(bench, reports, gracious)
    assert found.stray == stray
    names = Verdict._fields
    for window, right in zip(found.windows, expected, strict=True):
        values = dict(zip(names, astuple(window), strict=False))
        assert values == {**right._asdict(), "precision": float(right.precision),
                          "recall": float(right.recall)}  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), st.booleans())
def test_each_window_is_judged_as_the_specification_says(
    data: st.DataObject, gracious: bool, columns: bool, triples: bool
) -> None:
    records, bench = data.draw(benchmarks(["window-close", "non-empty", "periodic"]))
    reports = data.draw(reports_for(bench))
    oracle: Oracle = SqlOracle(records, SQL[bench.query])  # type: ignore[index]
    if triples:
        query = f"PREFIX om: <{OM}> {SPARQL[bench.query]}"  # type: ignore[index]
        oracle = Numbers(rdf_of(records), query)
    assert_equal(oracle, bench, reports, gracious, columns)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans())
def test_each_change_of_content_is_expected_as_the_specification_says(
    data: st.DataObject, gracious: bool
) -> None:
    """What is expected of every window, and of every window whose borders moved."""
    records, bench = data.draw(benchmarks(["content-change"]))
    oracle = SqlOracle(records, SQL[bench.query])  # type: ignore[index]
    windowing = Windowing(bench.size, bench.slide, bench.policy, bench.only_new)
    for window in windowing.windows(oracle.times[-1]):
        scope = window.scope
        if gracious:
            near = [time for time in oracle.times if time >= max(window.opened, scope.start)]
            scope = Scope(scope.start, data.draw(st.sampled_from([*near, scope.end])))
        found = expected_reports(oracle, windowing, window, scope)
        right = bench.expected(tuple(window.scope), *scope)
        # Averages are rounded as their values are added, which DuckDB does in another order.
        assert score(Bag(map(binding_of, right)), found).right
