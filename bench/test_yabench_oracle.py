"""The oracle of YABench with content-change at the largest size of Experiments 1 and 3.

    pytest bench/test_yabench_oracle.py

The answers are those of a right engine, one report for each change, and of one that is wrong in two
of a hundred bindings. Whole contents are only counted: nobody records hundreds of millions.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from yabench.answers import Answer
from yabench.benchmark import oracle_of
from yabench.bindings import Bag
from yabench.experiments import test_file as built_in
from yabench.judge import judge
from yabench.oracle import Oracle
from yabench.testfile import read_tests
from yabench.weather import generate
from yabench.windows import Scope, Windowing

pytest.importorskip("duckdb")


def new_reports(oracle: Oracle, windowing: Windowing) -> list[Answer]:
    """What a right engine reports: the bindings that are new at each change."""
    found = []
    for window in windowing.windows(oracle.times[-1]):
        arrivals = oracle.arrivals(window.scope, window.opened) or []
        at: dict[int, list[Any]] = {}
        for time, binding in arrivals:
            at.setdefault(time, []).append(binding)
        counts = type(oracle.results(Scope(0, 0)))
        found += [Answer(counts(bindings), time) for time, bindings in sorted(at.items())]
    return found


def spoiled(reports: list[Answer], share: int = 100) -> list[Answer]:
    """The same reports, where every 100th binding is lost and every 100th has a wrong number."""
    found = []
    place = 0
    for report in reports:
        bag = Bag()
        for binding, count in report.bindings.items():
            place += 1
            if place % share == 0:
                continue
            if place % share == 1:
                numbers = tuple((name, -1 - value) for name, value in binding.numbers)
                binding = binding._replace(numbers=numbers)
            bag[binding] += count
        found.append(report.with_bindings(bag))
    return found


@pytest.mark.parametrize("name", ["e1", "e3"])
@pytest.mark.parametrize("kind", ["new", "new, spoiled", "whole"])
def test_oracle_with_content_change(benchmark: Any, name: str, kind: str) -> None:
    test = read_tests(built_in(Path(name)), ["policy=content-change"])[-1]
    records = generate(test.stations, test.interval_ms, test.duration_ms, test.seed)
    windowing = replace(test.windowing, only_new=kind != "whole")
    reports = new_reports(oracle_of(test, records), windowing) if kind != "whole" else []
    reports = spoiled(reports) if kind == "new, spoiled" else reports

    def judged() -> Any:
        return judge(oracle_of(test, records), windowing, reports)

    found = benchmark.pedantic(judged, rounds=1, warmup_rounds=0)
    benchmark.extra_info["bindings"] = sum(window.expected for window in found.windows)
    assert found.right == (kind == "new")
    assert all(0.97 < window.recall <= 1 for window in found.windows) or kind == "whole"
    assert sum(window.expected for window in found.windows) > 10_000
