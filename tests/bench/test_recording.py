"""The recording that the benchmarks listen to, and the arithmetic that they compare with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xstream.bench import _statistics
from xstream.bench.recording import RATE_HZ, counting_aloud, read_recording, tiled, whole_windows
from xstream.errors import InputError
from xstream.ops._kernels import statistics


def test_somebody_counts_from_one_to_five() -> None:
    recording = counting_aloud()
    assert len(recording) == 9 * RATE_HZ
    assert recording.dtype == np.float32
    assert np.abs(recording).max() < 1.0
    loud = whole_windows(recording, 4410).reshape(-1, 4410).std(axis=1) > 0.01
    words = np.flatnonzero(np.diff(np.concatenate([[False], loud]).astype(int)) == 1)
    assert len(words) == 5


def test_it_is_the_same_every_time() -> None:
    first = counting_aloud().copy()
    counting_aloud.cache_clear()
    assert np.array_equal(first, counting_aloud())


def test_whole_windows_cut_the_same_windows_in_every_repetition() -> None:
    samples = np.arange(10, dtype=np.float32)
    assert whole_windows(samples, 4).tolist() == list(range(8))
    assert whole_windows(samples, 12).tolist() == [*range(10), 0, 1]
    assert len(tiled(whole_windows(samples, 4), 1.0)) == 2**18


def test_a_file_that_is_no_sound_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.wav"
    path.write_text("not a sound")
    with pytest.raises(InputError, match=r"notes\.wav cannot be read as a sound file"):
        read_recording(path)


@pytest.mark.parametrize("level", [0.0, 1e4, -3.0])
@pytest.mark.parametrize("width", [1, 7, 4096])
def test_the_bare_loop_computes_as_the_library_does(level: float, width: int) -> None:
    window = (np.random.default_rng(1).normal(level, 1.0, width)).astype(np.float32)
    mean = statistics.mean(window)
    assert _statistics.deviation(window) == pytest.approx(statistics.std(window), rel=1e-12)
    assert _statistics.mean(window) == pytest.approx(mean, rel=1e-12)
    exact = window.astype(np.float64)
    assert _statistics.deviation(window) == pytest.approx(exact.std(), rel=1e-6, abs=1e-9)
    assert mean == pytest.approx(exact.mean(), rel=1e-9, abs=1e-9)
