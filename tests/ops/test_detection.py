"""fir, decimate, trimpeak, threshold and cfar against their definitions, on any stream."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import numbers
from xstream.ops.cfar import Cfar
from xstream.ops.decimate import Decimate, lowpass
from xstream.ops.fir import Fir
from xstream.ops.gate import Gate
from xstream.ops.sync import Sync
from xstream.ops.threshold import Threshold
from xstream.ops.trimpeak import Trimpeak
from xstream.testing import CutSignal, list_source, run_operator, signals

REAL = (np.float32, np.int16)
#: Few lengths and factors: each is compiled once.
some_taps = st.sampled_from([1, 2, 9]).flatmap(
    lambda n: st.lists(st.floats(-2, 2, width=16), min_size=n, max_size=n).map(tuple)
)


def joined(placed: Any) -> Any:
    return np.concatenate([window.samples for window in placed] or [np.empty(0)])


@settings(max_examples=25)
@given(signals(REAL, max_width=120), some_taps)
def test_fir_is_seamless_across_segments(
    everywhere: Callable[..., Any], signal: CutSignal, taps: tuple[float, ...]
) -> None:
    placed = everywhere(Fir(taps), signal)
    assert np.allclose(joined(placed), numbers.fir(signal.samples, taps), rtol=1e-5, atol=1e-3)
    assert [window.start for window in placed] == [
        seg.start for seg in signal.segments() if seg.width
    ]


@settings(max_examples=25)
@given(signals(REAL, max_width=120), some_taps, st.sampled_from([1, 3, 4]))
def test_decimate_keeps_the_filtered_samples_at_multiples_of_the_factor(
    everywhere: Callable[..., Any], signal: CutSignal, taps: tuple[float, ...], factor: int
) -> None:
    placed = everywhere(Decimate(factor, taps), signal)
    filtered = numbers.fir(signal.samples, taps)
    index = signal.start + np.arange(len(filtered))
    wanted = index % factor == 0
    assert np.allclose(joined(placed), filtered[wanted], rtol=1e-5, atol=1e-3)
    at = [window.start + i for window in placed for i in range(len(window.samples))]
    assert at == (index[wanted] // factor).tolist()


def test_decimate_takes_out_what_the_lower_rate_cannot_show() -> None:
    time = np.arange(8000)
    low, high = np.sin(2 * np.pi * time / 100), np.sin(2 * np.pi * time / 3)
    for tone, least, most in ((low, 0.95, 1.05), (high, 0.0, 0.01)):
        kept = joined_array(run_operator(Decimate(4), [xs.SigSeg(tone)]))
        assert least <= np.abs(kept[100:]).max() <= most
    assert np.isclose(lowpass(7).sum(), 1.0)


def joined_array(segments: list[xs.SigSeg]) -> Any:
    return np.concatenate([np.asarray(seg) for seg in segments])


def test_a_gap_in_front_of_a_filter_is_an_error(fails_everywhere: Callable[..., str]) -> None:
    stream = [xs.SigSeg(np.zeros(4)), xs.SigSeg(np.zeros(4), 5)]
    message = fails_everywhere(Fir((1.0, 1.0)), stream)
    assert message.startswith("fir(2 taps), port 'in'")
    assert "there is a gap or an overlap before this segment" in message


@settings(max_examples=25)
@given(signals(REAL), st.booleans())
def test_trimpeak_finds_the_first_extreme_and_keeps_what_follows(
    everywhere: Callable[..., Any], signal: CutSignal, lowest: bool
) -> None:
    found = everywhere(Trimpeak(lowest), signal)
    segments = [seg for seg in signal.segments() if seg.width]
    assert len(found) == len(segments)
    for (value, rest), seg in zip(found, segments, strict=True):
        samples = np.asarray(seg)
        at = int(samples.argmin() if lowest else samples.argmax())
        assert value == samples[at]
        assert rest.start == seg.start + at
        assert rest.samples.tobytes() == samples[at:].tobytes()


@settings(max_examples=30)
@given(signals(REAL), st.integers(-90, 90), st.booleans())
def test_threshold_finds_stretches_whatever_the_windows(
    everywhere: Callable[..., Any], signal: CutSignal, level: int, absolute: bool
) -> None:
    told = everywhere(Threshold(level, absolute), signal)
    expected = numbers.above(signal.samples, signal.start, level, absolute)
    assert [(start, stop) for keep, start, stop in told if keep] == expected
    if len(signal.samples):  # everything is told, so that nobody need keep it
        assert max(stop for _, _, stop in told) == signal.start + len(signal.samples)
    ranges = list_source(told, {"keep": bool, "start": int, "stop": int})
    extracted = everywhere(Sync(), ranges, signal)
    assert [segment.start for segment in extracted] == [start for start, _ in expected]
    assert [len(segment.samples) for segment in extracted] == [b - a for a, b in expected]
    passed = everywhere(Gate(), ranges, signal)
    assert sum(len(window.samples) for window in passed) == sum(b - a for a, b in expected)


def test_a_break_in_the_signal_ends_a_stretch(everywhere: Callable[..., Any]) -> None:
    stream = [xs.SigSeg(np.ones(3)), xs.SigSeg(np.ones(3), 10)]
    told = everywhere(Threshold(0.5), stream)
    assert [found for found in told if found[0]] == [(True, 0, 3), (True, 10, 13)]


@st.composite
def cfar_parameters(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "sigmas": draw(st.sampled_from([1.0, 2.5, 6.0])),
        "alpha": draw(st.sampled_from([0.5, 0.9, 0.999])),
        "startup": draw(st.integers(1, 30)),
        "refractory": draw(st.integers(1, 10)),
        "padding": draw(st.integers(0, 100)),
        "step": draw(st.integers(1, 32)),
        "longest": draw(st.sampled_from([5, 40, 10_000])),
    }


@st.composite
def noisy_scores(draw: st.DrawFn) -> CutSignal:
    width = draw(st.integers(0, 200))
    noise = np.random.default_rng(draw(st.integers(0, 1000)))
    scores = np.abs(noise.normal(size=width))
    for at in draw(st.lists(st.integers(0, 199), max_size=4)):
        scores[at : at + 3] += 20.0
    cuts = tuple(draw(st.lists(st.integers(0, width), max_size=6)))
    return CutSignal(scores, draw(st.sampled_from([0, 7])), cuts)


@settings(max_examples=30)
@given(noisy_scores(), cfar_parameters())
def test_cfar_finds_the_events_of_its_definition_and_never_asks_for_what_is_gone(
    everywhere: Callable[..., Any], signal: CutSignal, parameters: dict[str, Any]
) -> None:
    told = everywhere(Cfar(**parameters), signal)
    expected = numbers.cfar(signal.samples.tolist(), signal.start, **parameters)
    assert [(start, stop) for keep, start, stop in told if keep] == expected
    gone = signal.start * parameters["step"]
    last_start = gone
    for keep, start, stop in told:
        assert start >= (gone if keep else last_start)
        last_start = start
        if not keep:
            gone = stop
    if signal.start == 0:
        singly = run_operator(Cfar(**parameters), list_source(signal.samples.tolist(), float))
        assert [found for found in singly if found[0]] == [found for found in told if found[0]]


def test_detections_of_cfar_cut_ranges_out_of_all_channels() -> None:
    """DETECTAUDIO in small: scores of one channel, ranges of two."""
    noise = np.random.default_rng(3)
    left = noise.normal(0, 1, 64_000).astype(np.float32)
    left[32_000:32_320] += 40.0
    right = np.arange(64_000, dtype=np.float32)

    @xs.kernel(out=xs.Out("float32", rate=Fraction(1, 32)))
    def score(window: Any, out: Any) -> None:
        for i in range(len(out)):
            total = 0.0
            for k in range(32):
                total += abs(window[32 * i + k])
            out[i] = total

    for memory in xs.MANAGER_NAMES:
        q = xs.Query()
        a = q.source(xs.io.array(left, window=1024))
        b = q.source(xs.io.array(right, window=777))
        events = a.map(score).cfar(8.0, startup=300, refractory=40, padding=2400, step=32)
        out = events.sync(a, b).collect()
        ((one, other),) = q.run(memory=memory)[out]
        assert (one.start, other.start) == (32_000 - 2400, 32_000 - 2400)
        assert one.stop == 32_320 + 2400
        assert (np.asarray(other) == right[other.start : other.stop]).all()


@pytest.mark.parametrize(
    "operator", [Fir((1.0, 2.0)), Decimate(3), Trimpeak(), Threshold(1.0), Cfar(3.0)]
)
def test_empty_streams_and_nulls_give_nothing(
    everywhere: Callable[..., Any], operator: Any
) -> None:
    assert everywhere(operator, list_source([], xs.Segment(np.float32))) == []
    assert everywhere(operator, CutSignal(np.empty(0, np.float32), 3, cuts=(0, 0))) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fir(()), "fir: taps must be one or more finite numbers"),
        (lambda: Decimate(0), "decimate: factor is at least 1, not 0"),
        (lambda: Cfar(-1.0), "cfar: sigmas is a finite number from 0"),
        (lambda: Cfar(1.0, alpha=1.5), "cfar: alpha is a finite number from 0 to 1, not 1.5"),
        (lambda: Cfar(1.0, step=0), "cfar: step is at least 1, not 0"),
        (lambda: Threshold(float("inf")), "threshold: level is a finite number, not inf"),
    ],
)
def test_bad_parameters_are_refused_when_declared(make: Any, words: str) -> None:
    with pytest.raises(xs.GraphError, match=words):
        make()
