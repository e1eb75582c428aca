"""Files of samples: npy, raw and sound files, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import xstream as xs
from tests.io.files import WAYS, joined, leaves_nothing, part, read, samples_of, write

RNG = np.random.default_rng(17)
NOISE = RNG.normal(size=150_001).astype(np.float32)
STEREO = RNG.normal(size=(70_003, 2)).astype(np.float32)


@pytest.fixture(params=["npy", "raw", "raw.gz", "raw.xz", "raw.zst", "wav"])
def mono(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    path = tmp_path / f"noise.{request.param}"
    if request.param == "npy":
        np.save(path, NOISE)
        return xs.io.npy(path, rate_hz=8000.0, window=4096)
    if request.param == "wav":
        soundfile.write(path, NOISE, 8000, subtype="FLOAT")
        return xs.io.wav(path, window=4096)
    write(xs.io.raw(path), NOISE)
    return xs.io.raw(path, np.float32, rate_hz=8000.0, window=4096)


@pytest.mark.parametrize("way", WAYS)
def test_all_samples_arrive_in_order_and_nothing_stays(mono: Any, way: Any) -> None:
    (segments,) = read(mono, *way)
    assert [len(np.asarray(each)) for each in segments[:-1]] == [4096] * (len(NOISE) // 4096)
    assert segments[0].timebase == xs.Timebase(8000.0)
    np.testing.assert_array_equal(joined(segments), NOISE)
    leaves_nothing(lambda q: q.source(mono).count(), *way)


def test_windows_that_no_block_holds_are_joined(tmp_path: Path) -> None:
    np.save(tmp_path / "noise.npy", NOISE)
    for window in (1, 7, 131_072, 140_000, 10**9):
        source = xs.io.npy(tmp_path / "noise.npy", window=window)
        if window == 1:
            q = xs.Query()
            out = q.source(source).count()
            assert q.run()[out] == len(NOISE)
            continue
        (segments,) = read(source)
        assert segments[0].width == min(window, len(NOISE))
        np.testing.assert_array_equal(joined(segments), NOISE)


def test_a_last_window_that_is_not_full_can_be_dropped(tmp_path: Path) -> None:
    np.save(tmp_path / "five.npy", np.arange(5))
    (segments,) = read(xs.io.npy(tmp_path / "five.npy", window=3, partial=False))
    assert [each.width for each in segments] == [3]


@pytest.mark.parametrize("kind", ["npy", "npy, Fortran order", "raw", "wav", "flac"])
def test_channels_are_fields_streams_rows_or_interleaved(kind: str, tmp_path: Path) -> None:
    frames = STEREO if kind != "flac" else np.round(STEREO.clip(-1, 1) * 2**15) / 2**16
    path = tmp_path / f"stereo.{kind.split(',')[0]}"
    options: dict[str, Any] = {"window": 1000}
    make: Any = xs.io.wav
    if kind.startswith("npy"):
        np.save(path, np.asfortranarray(frames) if "Fortran" in kind else frames)
        make = xs.io.npy
    elif kind == "raw":
        frames.tofile(path)
        make, options["channels"] = xs.io.raw, 2
    else:
        subtype = "FLOAT" if kind == "wav" else "PCM_24"
        soundfile.write(path, frames, 8000, subtype=subtype)
    fields = samples_of(make(path, **options))
    streams = samples_of(make(path, layout="streams", **options))
    for i in range(2):
        np.testing.assert_array_equal(fields[i], frames[:, i])
        np.testing.assert_array_equal(streams[i], frames[:, i])
    (whole,) = samples_of(make(path, layout="interleaved", **options))
    np.testing.assert_array_equal(whole, frames.reshape(-1))
    (rows,) = read(make(path, layout="rows", **options))
    np.testing.assert_array_equal(np.array(rows), frames)


def test_interleaved_samples_come_at_the_rate_of_all_channels(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "s.wav", STEREO, 8000, subtype="FLOAT")
    q = xs.Query()
    stream = q.source(xs.io.wav(tmp_path / "s.wav", layout="interleaved"))
    assert str(stream.schema) == "segment of float32 at 16000 Hz"
    left, right = stream.deinterleave(2)
    assert str(left.schema) == "segment of float32 at 8000 Hz"
    a, b = left.collect(), right.collect()
    run = q.run()
    np.testing.assert_array_equal(joined(run[a]), STEREO[:, 0])
    np.testing.assert_array_equal(joined(run[b]), STEREO[:, 1])


def test_a_source_with_several_streams_is_taken_as_a_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", STEREO)
    with pytest.raises(xs.GraphError, match=r"npy has 2 streams: use query\.sources"):
        xs.Query().source(xs.io.npy(tmp_path / "s.npy", layout="streams"))


@pytest.mark.parametrize("dtype", ["<i2", ">i2", ">f8", "c8", "?"])
def test_other_types_and_byte_orders(dtype: str, tmp_path: Path) -> None:
    samples = (RNG.normal(size=1000) * 100).astype(dtype)
    np.save(tmp_path / "x.npy", samples)
    samples.tofile(tmp_path / "x.raw")
    for source in (xs.io.npy(tmp_path / "x.npy"), xs.io.raw(tmp_path / "x.raw", dtype)):
        np.testing.assert_array_equal(samples_of(source)[0], samples)


def test_raw_samples_behind_an_odd_offset_are_copied(tmp_path: Path) -> None:
    path = tmp_path / "odd.raw"
    path.write_bytes(b"abc" + NOISE.tobytes())
    np.testing.assert_array_equal(samples_of(xs.io.raw(path, offset=3))[0], NOISE)


def test_mapped_samples_are_the_files_and_are_not_written_to(tmp_path: Path) -> None:
    """Editing a segment copies it, also where nobody else holds it."""
    path = tmp_path / "x.npy"
    np.save(path, NOISE)
    (segments,) = read(xs.io.npy(path, window=1000), "df", "refcount-realloc")
    assert segments[0].manager.stats().live_bytes == 0
    first = segments[0]
    with first.edit() as edit:
        edit.array[:] = 0
    grown = first.append(segments[1])  # would extend a block of the manager's own
    np.testing.assert_array_equal(np.asarray(grown), NOISE[:2000])
    np.testing.assert_array_equal(np.load(path), NOISE)


@pytest.mark.parametrize("form", ["wav", "npy", "raw", "raw.gz", "raw.xz", "raw.zst", "flac"])
def test_what_is_written_is_read_again(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{form}"
    frames = STEREO if form != "flac" else np.round(STEREO.clip(-1, 1) * 2**14) / 2**15
    make: Any = {"wav": xs.io.wav, "flac": xs.io.wav, "npy": xs.io.npy}.get(form, xs.io.raw)
    write(make(path), frames[:, 0], frames[:, 1], rate_hz=8000.0)
    assert path.exists()
    assert not part(path).exists()
    more = {"channels": 2} if make is xs.io.raw else {}
    for column, wanted in zip(samples_of(make(path, **more)), frames.T, strict=True):
        np.testing.assert_array_equal(column, wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
def test_sound_files_are_what_libsndfile_expects(dtype: str, tmp_path: Path) -> None:
    samples = (RNG.normal(size=777) * 50 + 100).astype(dtype)
    write(xs.io.wav(tmp_path / "x.wav"), samples, rate_hz=44_100.0)
    with soundfile.SoundFile(tmp_path / "x.wav") as sound:
        assert (sound.samplerate, sound.channels, sound.frames) == (44_100, 1, 777)
    if dtype in ("int16", "int32", "float32", "float64"):
        found, _ = soundfile.read(tmp_path / "x.wav", dtype=dtype)
        np.testing.assert_array_equal(found, samples)


def test_a_sound_file_of_more_than_four_gigabytes_says_so(tmp_path: Path) -> None:
    """Its header alone is tried: a sparse file with a hole for the samples."""
    from xstream.io.output import OutputFile, Signals
    from xstream.io.wav import RiffWriter

    path = tmp_path / "large.wav"
    signals = Signals(("a",), (np.dtype("float32"),), xs.Timebase(8000.0), False)
    writer = RiffWriter(OutputFile(path), signals)
    writer.output.file.truncate(RiffWriter.HEADER_BYTES + 5 * 2**30)
    writer.finish()
    with soundfile.SoundFile(path) as sound:
        assert sound.frames == 5 * 2**30 // 4
