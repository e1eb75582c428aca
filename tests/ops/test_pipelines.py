"""The paper's queries in small, out of library operators, the same in every mode."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft

import xstream as xs
from tests.ops.conftest import EVERYWHERE, plain, shown
from tests.reference import numbers

ROOT = Path(__file__).parents[2]


def everywhere(query: xs.Query, sink: Any) -> Any:
    expected = first = None
    for scheduler, memory, burst, debug in EVERYWHERE:
        results = query.run(scheduler, memory, burst, debug=debug)[sink]
        if expected is None:
            expected, first = shown(results), plain(results)
        assert shown(results) == expected, (scheduler, memory, burst, debug)
    return first


@xs.kernel
def leaks(first: Any, _a: Any, last: Any, _b: Any) -> bool:
    return abs(last / first) < 0.32


def test_pipeline_finds_the_leaks_of_its_definition() -> None:
    """Windows overlapping by 500, Haar level 4, four trimpeaks in turn, zip, ratio."""
    noise = np.random.default_rng(9)
    samples = noise.normal(size=60_000) * np.repeat(noise.uniform(0.1, 3, 60), 1000)
    q = xs.Query()
    wavelet = q.source(xs.io.array(samples, window=600)).rewindow(8192, -500).haar(4)
    first = wavelet.trimpeak()
    second = first.select("segment").trimpeak(lowest=True)
    third = second.select("segment").trimpeak()
    fourth = third.select("segment").trimpeak(lowest=True)
    out = first.zip(fourth).map(leaks).collect()
    expected = []
    for start in range(0, len(samples) - 8192 + 1, 8192 - 500):
        band = numbers.haar(samples[start : start + 8192], 4)[3]
        peaks = []
        for lowest in (False, True, False, True):
            at = band.argmin() if lowest else band.argmax()
            peaks.append(band[at])
            band = band[at:]
        expected.append(bool(abs(peaks[3] / peaks[0]) < 0.32))
    assert everywhere(q, out) == expected
    assert len(expected) == 7


@xs.kernel(out=xs.Out("float32", rate=Fraction(1, 17)))
def loudness(spectra: Any, weights: Any, out: Any) -> None:
    bins = len(weights)
    for i in range(len(out)):
        total = 0.0
        for k in range(bins):
            total += weights[k] * abs(spectra[i * bins + k])
        out[i] = total


def test_detectaudio_cuts_the_events_out_of_all_channels() -> None:
    noise = np.random.default_rng(4)
    channels = noise.normal(0, 100, (4, 48_000)).astype(np.int16)
    for at in (20_000, 40_000):
        channels[0, at : at + 640] += (3000 * np.sin(np.arange(640))).astype(np.int16)
    weights = np.linspace(0.0, 1.0, 17)
    q = xs.Query()
    frames = q.source(xs.io.array(channels.T.ravel(), rate_hz=4 * 48_000.0, window=4 * 1024))
    streams = frames.deinterleave(4)
    scores = streams[0].hanning(32).fft(32).map(loudness, weights)
    events = scores.cfar(8.0, 0.999, startup=300, refractory=40, padding=2400, step=32)
    out = events.sync(*streams).collect()

    windows = channels[0, : 48_000 // 32 * 32].reshape(-1, 32) * np.hanning(32)
    reference = np.abs(scipy.fft.rfft(windows)) @ weights
    expected = numbers.cfar(reference.tolist(), 0, 8.0, 0.999, 300, 40, 2400, 32, 10_000)
    found = everywhere(q, out)
    assert [(row[0].start, row[0].start + len(row[0].samples)) for row in found] == expected
    assert len(expected) == 2
    for row in found:
        for channel, segment in enumerate(row):
            stop = segment.start + len(segment.samples)
            assert (segment.samples == channels[channel, segment.start : stop]).all()


def test_library_kernels_come_from_the_cache_in_a_fresh_process(tmp_path: Path) -> None:
    script = """
import numpy as np, xstream as xs
from xstream.kernels.apply import KernelApply
q = xs.Query()
src = q.source(xs.io.array(np.ones(64, np.float32), window=32))
src.hanning(32).fft(32).count(); src.std_above(0.5).count(); src.trimpeak().count()
q.run()
for node in q.nodes:
    if isinstance(node.operator, KernelApply):
        inputs = q.schema_of(node.inputs[0])
        print(node.name, node.operator.compiled(inputs).from_cache)
"""
    environment = {**os.environ, "XSTREAM_CACHE_DIR": str(tmp_path)}
    answers = [
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True,
            text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert answers[0] == ["hanning", "False", "fft", "False", "std_above", "False", "trimpeak",
                          "False"]  # fmt: skip
    assert answers[1] == ["hanning", "True", "fft", "True", "std_above", "True", "trimpeak", "True"]
