"""Window statistics: right on any level, for any real dtype, and their filters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import numbers
from xstream.ops.energy import Energy
from xstream.ops.mean import Mean
from xstream.ops.mean_below import MeanBelow
from xstream.ops.silence import Silence
from xstream.ops.stats import Stats
from xstream.ops.std import Std
from xstream.ops.std_above import StdAbove
from xstream.testing import CutSignal, list_source, run_operator, signals

REAL = (np.float32, np.float64, np.int16, np.bool_)


def close(a: float, b: float, relative: float = 1e-9) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=relative, abs_tol=1e-12)


def windows_of(signal: CutSignal) -> list[Any]:
    return [(seg.start, np.asarray(seg).astype(np.float64)) for seg in signal.segments()]


@settings(max_examples=25)
@given(signals(REAL))
def test_statistics_equal_their_definitions(
    everywhere: Callable[..., Any], signal: CutSignal
) -> None:
    windows = windows_of(signal)
    for operator, reference in (
        (Mean(), numbers.mean), (Std(), numbers.std), (Energy(), numbers.energy),
    ):  # fmt: skip
        results = everywhere(operator, signal)
        assert all(
            close(result, reference(window))
            for result, (_, window) in zip(results, windows, strict=True)
        )
    for (start, mean, std, energy), (at, window) in zip(
        everywhere(Stats(), signal), windows, strict=True
    ):
        assert start == at
        assert close(mean, numbers.mean(window))
        assert close(std, numbers.std(window))
        assert close(energy, numbers.energy(window))


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=300),
    st.sampled_from([0.0, 1e4, -1e7, 3e10]),
    st.sampled_from([np.float32, np.float64]),
)
def test_a_high_level_costs_no_accuracy(values: list[float], level: float, dtype: Any) -> None:
    samples = (np.array(values) + level).astype(dtype)
    segment = [xs.SigSeg(samples)]
    expected = numbers.std(samples.astype(np.float64))
    # n rounding errors of the deviations from one sample, whatever the level
    scale = float(np.ptp(samples.astype(np.float64))) + abs(level) * 1e-15
    assert abs(run_operator(Std(), segment)[0] - expected) <= 1e-10 * scale + 1e-12
    assert close(run_operator(Mean(), segment)[0], numbers.mean(samples.astype(np.float64)))


def test_the_trap_of_the_one_pass_float32_variance() -> None:
    """Unit noise on a level of 1e4: the naive form gives -26.8."""
    noise = np.random.default_rng(1).normal(1e4, 1.0, 4096).astype(np.float32)
    result = run_operator(Std(), [xs.SigSeg(noise)])[0]
    assert math.isclose(result, np.std(noise.astype(np.float64)), rel_tol=1e-9)
    assert 0.95 < result < 1.05


def test_an_outlier_in_the_first_sample_is_no_trap() -> None:
    samples = np.random.default_rng(2).normal(0.0, 1e-3, 100_000)
    samples[0] = 1e6
    result = run_operator(Std(), [xs.SigSeg(samples)])[0]
    assert math.isclose(result, numbers.std(samples), rel_tol=1e-9)


def test_nan_and_infinity_are_not_hidden() -> None:
    for bad in (math.nan, math.inf):
        samples = np.ones(1000, np.float32)
        samples[617] = bad
        assert math.isnan(run_operator(Std(), [xs.SigSeg(samples)])[0])
        assert not math.isfinite(run_operator(Mean(), [xs.SigSeg(samples)])[0])
        assert run_operator(StdAbove(0.0), [xs.SigSeg(samples)]) == []


@settings(max_examples=20)
@given(signals((np.float32, np.int16)), st.floats(0, 80), st.floats(-50, 50))
def test_filters_pass_the_windows_that_fit(
    everywhere: Callable[..., Any], signal: CutSignal, alpha: float, beta: float
) -> None:
    windows = windows_of(signal)
    loud = [at for at, window in windows if numbers.std(window) > alpha]
    low = [at for at, window in windows if numbers.mean(window) < beta]
    assert [window.start for window in everywhere(StdAbove(alpha), signal)] == loud
    assert [window.start for window in everywhere(MeanBelow(beta), signal)] == low
    ranges = [
        (numbers.std(window) > alpha, at, at + len(window)) for at, window in windows if len(window)
    ]
    assert everywhere(Silence(alpha), signal) == ranges


def test_empty_null_and_single_sample_streams(everywhere: Callable[..., Any]) -> None:
    empty = list_source([], xs.Segment(np.float32))
    nulls = CutSignal(np.empty(0, np.float32), cuts=(0,))
    one = CutSignal(np.float32([3.0]), 5)
    for operator in (Mean(), Std(), Energy(), Stats(), StdAbove(0.0), MeanBelow(9.0), Silence(0)):
        assert everywhere(operator, empty) == []
    assert all(math.isnan(value) for value in everywhere(Mean(), nulls) + everywhere(Std(), nulls))
    assert everywhere(Energy(), nulls) == [0.0, 0.0]
    assert everywhere(StdAbove(-1.0), nulls) == everywhere(Silence(-1.0), nulls) == []
    assert everywhere(Stats(), one) == [(5, 3.0, 0.0, 9.0)]


def test_a_slow_consumer_never_deadlocks() -> None:
    import time

    for scheduler in xs.SCHEDULER_NAMES:
        for burst in (1, None):
            q = xs.Query()
            src = q.source(xs.io.array(np.ones(200, np.float32), window=10))
            slow = src.gate(src.silence(-1.0)).map(lambda seg: time.sleep(0.001) or seg).count()
            assert q.run(scheduler, tuple_burst=burst)[slow] == 20


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StdAbove(math.nan), "std_above: alpha is a finite number, not nan"),
        (lambda: MeanBelow("x"), "mean_below: beta is a number, not 'x'"),
        (lambda: Silence(True), "silence: gamma is a number, not True"),
    ],
)
def test_bad_parameters_are_refused_when_declared(make: Any, words: str) -> None:
    with pytest.raises(xs.GraphError, match=words):
        make()


def test_complex_samples_and_scalars_are_refused() -> None:
    with pytest.raises(xs.SchemaError, match="mean, port 'in': needs real samples, not complex64"):
        run_operator(Mean(), [xs.SigSeg(np.zeros(3, np.complex64))])
    with pytest.raises(xs.SchemaError, match="std, port 'in': needs a stream of segments"):
        run_operator(Std(), [1.0])
