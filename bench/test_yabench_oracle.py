"""The oracle of YABench with content-change at the largest size of Experiments 1 and 3.

    pytest bench/test_yabench_oracle.py

The answers are those of a right engine, one report for each change; they are judged as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from yabench.answers import Answer
from yabench.benchmark import oracle_of
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


@pytest.mark.parametrize("name", ["e1", "e3"])
@pytest.mark.parametrize("only_new", [True, False])
def test_oracle_with_content_change(benchmark: Any, name: str, only_new: bool) -> None:
    test = read_tests(built_in(Path(name)), ["policy=content-change"])[-1]
    records = generate(test.stations, test.interval_ms, test.duration_ms, test.seed)
    windowing = replace(test.windowing, only_new=only_new)
    reports = new_reports(oracle_of(test, records), windowing) if only_new else []

    def judged() -> Any:
        return judge(oracle_of(test, records), windowing, reports)

    found = benchmark.pedantic(judged, rounds=1, warmup_rounds=0)
    benchmark.extra_info["bindings"] = sum(window.expected for window in found.windows)
    assert found.right == only_new
    assert sum(window.expected for window in found.windows) > 10_000
