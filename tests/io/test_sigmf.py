"""SigMF recordings: types, channels, and what SigMF's own library says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sigmf

import xstream as xs
from tests.io.files import read, samples_of, write

RNG = np.random.default_rng(21)


def recorded(folder: Path, samples: Any, datatype: str, **described: Any) -> Path:
    """A recording that SigMF's library has written."""
    samples.tofile(folder / "rec.sigmf-data")
    meta = sigmf.SigMFFile(
        data_file=folder / "rec.sigmf-data",
        global_info={"core:datatype": datatype, "core:sample_rate": 48_000, **described},
    )
    meta.add_capture(0)
    meta.tofile(folder / "rec.sigmf-meta")
    return folder / "rec"


@pytest.mark.parametrize("datatype", ["cf32_le", "rf32_le", "ri16_be", "ru8", "rf64_be"])
def test_recordings_of_the_library_are_read(datatype: str, tmp_path: Path) -> None:
    code = {"c": "c8", "rf3": "f4", "rf6": "f8", "ri1": "i2", "ru8": "u1"}
    kind = next(dtype for name, dtype in code.items() if datatype.startswith(name))
    samples = (RNG.normal(size=10_000) * 50 + 60).astype(("<", ">")["be" in datatype] + kind)
    path = recorded(tmp_path, samples, datatype)
    (segments,) = read(xs.io.sigmf(path, window=1000))
    assert segments[0].timebase == xs.Timebase(48_000.0)
    np.testing.assert_array_equal(samples_of(xs.io.sigmf(path))[0], samples)


@pytest.mark.parametrize("suffix", ["", ".sigmf-meta", ".sigmf-data"])
def test_complex_integers_become_complex_numbers(suffix: str, tmp_path: Path) -> None:
    pairs = RNG.integers(-1000, 1000, (5_000, 2)).astype("<i2")
    path = recorded(tmp_path, pairs, "ci16_le")
    found = samples_of(xs.io.sigmf(f"{path}{suffix}", window=77))[0]
    np.testing.assert_array_equal(found, pairs[:, 0] + 1j * pairs[:, 1])


def test_channels(tmp_path: Path) -> None:
    frames = RNG.normal(size=(3_000, 2)).astype("<f4")
    path = recorded(tmp_path, frames, "rf32_le", **{"core:num_channels": 2})
    found = samples_of(xs.io.sigmf(path, layout="streams"))
    np.testing.assert_array_equal(found, frames.T)


def test_what_is_written_is_what_the_library_expects(tmp_path: Path) -> None:
    samples = np.exp(0.1j * np.arange(5_000)).astype(np.complex64)
    write(xs.io.sigmf(tmp_path / "out"), samples, rate_hz=1e6)
    meta = sigmf.fromfile(str(tmp_path / "out.sigmf-meta"))
    meta.validate()
    assert meta.get_global_field("core:sample_rate") == 1e6
    np.testing.assert_array_equal(meta.read_samples(), samples)
    np.testing.assert_array_equal(samples_of(xs.io.sigmf(tmp_path / "out"))[0], samples)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"core:datatype": "xf32_le"}, "is not SigMF"),
        ({"core:sample_rate": -1}, "is not SigMF"),
        ({"core:num_channels": 10**12}, "core:num_channels is 1000000000000"),
    ],
)
def test_metadata_that_are_wrong(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = recorded(tmp_path, np.zeros(10, "<f4"), "rf32_le")
    meta = json.loads((tmp_path / "rec.sigmf-meta").read_text())
    meta["global"].update(change)
    (tmp_path / "rec.sigmf-meta").write_text(json.dumps(meta))
    with pytest.raises(xs.InputError, match=said):
        read(xs.io.sigmf(path))


def test_a_recording_needs_both_files(tmp_path: Path) -> None:
    path = recorded(tmp_path, np.zeros(10, "<f4"), "rf32_le")
    (tmp_path / "rec.sigmf-data").unlink()
    with pytest.raises(xs.InputError, match=r"rec\.sigmf-data does not exist"):
        read(xs.io.sigmf(path))
    (tmp_path / "rec.sigmf-meta").unlink()
    with pytest.raises(xs.InputError, match=r"rec\.sigmf-meta does not exist"):
        read(xs.io.sigmf(path))
