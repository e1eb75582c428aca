"""`xstream bench threads`: what it refuses; that its runs are compared."""

from __future__ import annotations

import pytest

import xstream as xs
from xstream.bench.settings import Settings
from xstream.bench.threads import threads


def test_the_ratio_is_that_of_runs_with_the_same_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xstream.bench.threads.usable_cores", lambda: 2)
    monkeypatch.setattr("xstream.run.MEASURE_NS", 0)
    report = threads(Settings(trials=1, seconds=0.01), "pipeline", (1, 2))
    names = ["1 threads", "2 threads", "2 processes"]
    assert [result.name for result in report.results] == names
    ratio, most = report.figures
    one, two, processes = (result.samples_per_second for result in report.results)
    assert ratio.value == two / one
    assert most.value == processes / one
    assert report.results[2].best.samples == 2 * report.results[0].best.samples


@pytest.mark.parametrize("counts", [(), (0,), (1, 10_000)])
def test_numbers_of_threads_are_checked(counts: tuple[int, ...]) -> None:
    with pytest.raises(xs.InputError, match="--threads is one or more numbers from 1 to"):
        threads(Settings(), "pipeline", counts)
