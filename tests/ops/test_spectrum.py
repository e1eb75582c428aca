"""hanning, fft, ifft and haar against their definitions and against scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import numbers
from xstream.ops.fft import Fft
from xstream.ops.haar import Haar
from xstream.ops.hanning import Hanning
from xstream.ops.ifft import Ifft
from xstream.testing import CutSignal, list_source, run_operator, signals

SIZES = (1, 3, 32)  # each is compiled once
REAL = (np.float32, np.float64, np.int16)


@st.composite
def many_windows(draw: st.DrawFn, dtypes: Any) -> tuple[CutSignal, int]:
    """A signal cut into segments of whole windows, one or many or none."""
    size = draw(st.sampled_from(SIZES))
    count = draw(st.integers(0, 6))
    cuts = tuple(size * cut for cut in draw(st.lists(st.integers(0, count), max_size=4)))
    signal = draw(signals(dtypes, max_width=0))
    noise = np.random.default_rng(draw(st.integers(0, 99)))
    samples = (100 * noise.normal(size=size * count)).astype(signal.samples.dtype)
    return CutSignal(samples, size * draw(st.integers(-3, 3)), cuts), size


def joined(placed: Any) -> Any:
    return np.concatenate([window.samples for window in placed] or [np.empty(0)])


@settings(max_examples=25)
@given(many_windows(REAL))
def test_hanning_weighs_every_window(
    everywhere: Callable[..., Any], drawn: tuple[CutSignal, int]
) -> None:
    signal, size = drawn
    result = joined(everywhere(Hanning(size), signal))
    assert np.allclose(result, numbers.hanning(signal.samples, size), rtol=1e-5, atol=1e-4)
    if len(result):
        assert result.dtype == np.result_type(signal.samples.dtype, np.float32)


@settings(max_examples=25)
@given(many_windows(REAL))
def test_fft_of_real_samples_is_the_half_spectrum_of_each_window(
    everywhere: Callable[..., Any], drawn: tuple[CutSignal, int]
) -> None:
    signal, size = drawn
    placed = everywhere(Fft(size), signal)
    spectra = joined(placed).reshape(-1, size // 2 + 1)
    rows = signal.samples.reshape(-1, size).astype(np.float64)
    for spectrum, row in zip(spectra, rows, strict=True):
        assert np.allclose(spectrum, numbers.dft(row)[: size // 2 + 1], rtol=1e-4, atol=1e-2)
    assert np.allclose(spectra, scipy.fft.rfft(rows), rtol=1e-4, atol=1e-2)
    if len(placed):
        assert placed[0].start * size == signal.start * (size // 2 + 1)
        assert placed[0].samples.dtype == np.result_type(
            np.result_type(signal.samples.dtype, np.float32), np.complex64
        )


@settings(max_examples=15)
@given(many_windows((np.complex64, np.complex128)))
def test_fft_of_complex_samples_has_all_bins_and_an_inverse(
    everywhere: Callable[..., Any], drawn: tuple[CutSignal, int]
) -> None:
    signal, size = drawn
    placed = everywhere(Fft(size), signal)
    rows = signal.samples.reshape(-1, size)
    assert np.allclose(joined(placed).reshape(-1, size), scipy.fft.fft(rows), 1e-4, 1e-2)
    segments = [xs.SigSeg(window.samples, window.start) for window in placed]
    back = everywhere(
        Ifft(size, real=False), list_source(segments, xs.Segment(signal.samples.dtype))
    )
    assert np.allclose(joined(back), signal.samples, 1e-4, 1e-3)


@settings(max_examples=15)
@given(many_windows(REAL))
def test_ifft_gives_the_samples_back(
    everywhere: Callable[..., Any], drawn: tuple[CutSignal, int]
) -> None:
    signal, size = drawn
    dtype = np.result_type(np.result_type(signal.samples.dtype, np.float32), np.complex64)
    spectra = [xs.SigSeg(window.samples, window.start) for window in everywhere(Fft(size), signal)]
    placed = everywhere(Ifft(size), list_source(spectra, xs.Segment(dtype)))
    assert np.allclose(joined(placed), signal.samples, rtol=1e-4, atol=1e-3)
    assert [window.start for window in placed] == [seg.start for seg in signal.segments()]


@settings(max_examples=25)
@given(
    st.sampled_from([1, 4]),
    st.integers(0, 5),
    st.integers(-4, 4),
    st.sampled_from([np.float32, np.float64]),
)
def test_haar_is_orthonormal_and_equals_its_definition(
    everywhere: Callable[..., Any], level: int, blocks: int, at: int, dtype: Any
) -> None:
    width = blocks * 2**level
    samples = (100 * np.random.default_rng(blocks).normal(size=width)).astype(dtype)
    signal = CutSignal(samples, at * 2**level)
    (bands,) = everywhere(Haar(level, bands=True), signal)
    expected = numbers.haar(samples, level)
    for k, (band, reference) in enumerate(zip(bands, expected, strict=True)):
        assert np.allclose(band.samples, reference, rtol=1e-5, atol=1e-3)
        assert band.start == signal.start >> min(k + 1, level)
    energy = sum(numbers.energy(band.samples.astype(float)) for band in bands)
    assert np.isclose(energy, numbers.energy(samples.astype(float)), rtol=1e-5)
    (detail,) = everywhere(Haar(level), signal)
    assert detail.samples.tobytes() == bands[level - 1].samples.tobytes()


def test_rates_follow_the_transform() -> None:
    q = xs.Query()
    src = q.source(xs.io.array(np.zeros(64, np.float32), rate_hz=3200.0))
    rates = [
        stream.schema.fields[0].type.timebase.rate_hz  # type: ignore[union-attr]
        for stream in (src.fft(32), src.fft(32).ifft(32), src.haar(3), src.hanning(32))
    ]
    assert rates == [1700.0, 3200.0, 400.0, 3200.0]


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (Hanning(4), "hanning, port 'in'"),
        (Fft(4), "fft, port 'in'"),
        (Haar(2), "haar, port 'in'"),
    ],
)
def test_segments_that_do_not_hold_whole_windows_are_errors(
    fails_everywhere: Callable[..., str], operator: Any, words: str
) -> None:
    message = fails_everywhere(operator, CutSignal(np.zeros(10, np.float32)))
    assert message.startswith(words)
    assert "ValueError" in message


def test_nulls_and_empty_streams(everywhere: Callable[..., Any]) -> None:
    nulls = CutSignal(np.empty(0, np.float32), cuts=(0,))
    for operator in (Hanning(4), Fft(4), Haar(2)):
        assert [len(window.samples) for window in everywhere(operator, nulls)] == [0, 0]
        assert everywhere(operator, list_source([], xs.Segment(np.float32))) == []


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(xs.GraphError, match="fft: size is at least 1, not 0"):
        Fft(0)
    with pytest.raises(xs.GraphError, match="haar: level is at most 32, not 33"):
        Haar(33)
    with pytest.raises(xs.SchemaError, match="ifft, port 'in'"):
        run_operator(Ifft(4), [xs.SigSeg(np.zeros(4))])
    with pytest.raises(xs.SchemaError, match="hanning, port 'in': needs real samples"):
        run_operator(Hanning(4), [xs.SigSeg(np.zeros(4, np.complex64))])
