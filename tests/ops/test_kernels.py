"""The kernels as plain functions: the same whether compiled, uncompiled, or with bounds checked.

`test_in_every_mode_of_numba` runs this file again in processes of its own, since numba reads its
settings when it is imported.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import xstream as xs
from tests.reference import numbers
from xstream.kernels._emitter import PlainEmitter
from xstream.kernels.pieces import Pieces
from xstream.ops import (
    cfar,
    decimate,
    energy,
    fft,
    fir,
    haar,
    hanning,
    ifft,
    mean,
    mean_below,
    silence,
    stats,
    std,
    std_above,
    threshold,
    trimpeak,
)  # fmt: skip
from xstream.ops._kernels import detection, filters, spectrum, statistics
from xstream.testing import run_operator

NOISE = np.random.default_rng(5).normal(size=96)
ROOT = Path(__file__).parents[2]


def state(**arrays: Any) -> Any:
    return namedtuple("State", arrays)(**arrays)


def test_statistics() -> None:
    assert math.isclose(statistics.mean(NOISE), numbers.mean(NOISE))
    assert math.isclose(statistics.std(NOISE), numbers.std(NOISE))
    assert math.isclose(statistics.energy(NOISE), numbers.energy(NOISE))
    assert math.isnan(statistics.mean(NOISE[:0]))
    assert math.isnan(statistics.std(NOISE[:0]))
    assert statistics.std_above(NOISE, 0.5)
    assert not statistics.mean_below(NOISE, -1.0)
    out = PlainEmitter(start=7)
    statistics.silence(NOISE, 0.5, out)
    statistics.silence(NOISE[:0], 0.5, out)
    assert out.emitted == [(None, (True, 7, 103))]
    out = PlainEmitter(start=7)
    statistics.stats(NOISE, out)
    assert out.emitted[0][1][0] == 7


def test_transforms() -> None:
    out = np.empty(96)
    spectrum.hanning(NOISE, np.hanning(32), out)
    assert np.allclose(out, numbers.hanning(NOISE, 32))
    if numba.config.DISABLE_JIT:
        bins = np.empty(3 * 17, np.complex128)
        spectrum.rfft(NOISE, 32, bins)
        assert np.allclose(bins.reshape(3, 17)[1], numbers.dft(NOISE[32:64])[:17])
        back = np.empty(96)
        spectrum.irfft(bins, 32, back)
        assert np.allclose(back, NOISE)
        full = np.empty(96, np.complex128)
        spectrum.cfft(NOISE + 0j, 32, True, full)
        spectrum.rfft_converted((NOISE * 100).astype(np.int16), 32, np.empty(0), bins)
    details = [np.empty(48), np.empty(24), np.empty(24)]
    spectrum.haar_bands(NOISE, 2, details)
    for band, expected in zip(details, numbers.haar(NOISE, 2), strict=True):
        assert np.allclose(band, expected)
    detail = np.empty(24)
    spectrum.haar_detail(NOISE, 2, detail)
    assert (detail == details[1]).all()
    with pytest.raises(ValueError, match="multiple of 2"):
        spectrum.haar_detail(NOISE[:3], 1, detail)


def test_filter() -> None:
    taps = np.array([0.5, 0.25, -1.0])
    kept = state(history=np.zeros(2), at=np.zeros(2, np.int64))
    got = []
    for low, high in ((0, 10), (10, 11), (11, 11), (11, 96)):
        out = PlainEmitter(start=low)
        middle = (low + high) // 2
        window = Pieces([NOISE[low:middle], NOISE[middle:high]])
        filters.fir(window, taps[::-1].copy(), 1, np.empty(0), kept, out)
        got += [values for _, (values,) in out.emitted]
    assert np.allclose(np.concatenate(got), numbers.fir(NOISE, taps))


def test_detectors() -> None:
    out = PlainEmitter(start=3)
    detection.trimpeak(NOISE, False, out)
    ((at, (value, rest)),) = out.emitted
    assert (at, value, len(rest)) == (3 + NOISE.argmax(), NOISE.max(), 96 - NOISE.argmax())
    kept = state(at=np.zeros(3, np.int64), flags=np.zeros(2, np.bool_))
    out = PlainEmitter()
    detection.threshold(Pieces([NOISE[:40], NOISE[40:]]), 1.0, False, kept, out)
    out.ended = True
    detection.threshold(Pieces([NOISE[:0]]), 1.0, False, kept, out)
    found = [values[1:] for _, values in out.emitted if values[0]]
    assert found == numbers.above(NOISE, 0, 1.0, False)
    kept = state(model=np.zeros(2), at=np.zeros(6, np.int64), flags=np.zeros(2, np.bool_))
    out = PlainEmitter()
    detection.cfar(NOISE, 0.9, 1.5, 10, 4, 8, 2, 1000, kept, out)
    out.ended = True
    detection.cfar(NOISE[:0], 0.9, 1.5, 10, 4, 8, 2, 1000, kept, out)
    found = [values[1:] for _, values in out.emitted if values[0]]
    assert found == numbers.cfar(NOISE.tolist(), 0, 1.5, 0.9, 10, 4, 8, 2, 1000)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="the engine runs compiled kernels only")
@pytest.mark.parametrize(
    "operator",
    [
        mean.Mean(), std.Std(), energy.Energy(), stats.Stats(), std_above.StdAbove(0.5),
        mean_below.MeanBelow(0.5), silence.Silence(0.5), hanning.Hanning(32), fft.Fft(32),
        haar.Haar(4), haar.Haar(1, bands=True), trimpeak.Trimpeak(), threshold.Threshold(1.0),
        cfar.Cfar(1.5, 0.9, 10, 4, 8, 2), fir.Fir((0.5, 0.5)), decimate.Decimate(4),
    ],
    ids=lambda operator: operator.label,
)  # fmt: skip
def test_compiled(operator: Any) -> None:
    """Each kernel over whole and broken windows; bounds are checked where numba was told to."""
    run_operator(operator, [xs.SigSeg(NOISE), xs.SigSeg(NOISE[:32], 96), xs.SigSeg(NOISE[:0])])


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="the engine runs compiled kernels only")
def test_compiled_inverse() -> None:
    (spectra,) = run_operator(fft.Fft(32), [xs.SigSeg(NOISE)])
    (back,) = run_operator(ifft.Ifft(32), [spectra])
    assert np.allclose(back, NOISE)


#: Bounds of all compiled operators are checked in debug mode by every other test of operators.
SOME_COMPILED = "not test_compiled or mean or fft or threshold"


@pytest.mark.skipif("XSTREAM_NUMBA_MODE" in os.environ, reason="this is such a process")
@pytest.mark.parametrize(
    ("mode", "which"),
    [
        ("NUMBA_DISABLE_JIT", ""),
        ("NUMBA_BOUNDSCHECK", SOME_COMPILED),
        pytest.param("NUMBA_BOUNDSCHECK", "", marks=pytest.mark.slow),
    ],
    ids=["uncompiled", "bounds of some", "bounds of all"],
)
def test_in_every_mode_of_numba(mode: str, which: str) -> None:
    """The cache of compiled kernels keeps the modes apart."""
    environment = {**os.environ, mode: "1", "XSTREAM_NUMBA_MODE": mode}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "tests/ops/test_kernels.py", "-k", which]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
