"""What is wrong with a file is said in one sentence; what stands before it has arrived."""

from __future__ import annotations

import errno
import gc
import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

import xstream as xs
from tests.io.files import read, write
from tests.io.peers import free_port

NOISE = np.random.default_rng(19).normal(size=50_000).astype(np.float32)
MAKERS: dict[str, Callable[..., Any]] = {
    "npy": xs.io.npy, "raw": xs.io.raw, "wav": xs.io.wav, "csv": xs.io.csv,
    "parquet": xs.io.parquet, "arrow": xs.io.arrow, "arrows": xs.io.arrow,
}  # fmt: skip


def arrived(source: Any) -> tuple[list[Any], xs.XStreamError | None]:
    """What reached a sink, and the error that ended the run."""
    seen: list[Any] = []
    q = xs.Query()
    rows = source.layout == "rows"
    try:
        q.source(source).sink(
            lambda *values: (
                seen.append(values) if rows else seen.extend(np.asarray(values[0]).tolist())
            )
        )
        q.run()
    except xs.XStreamError as error:
        return seen, error
    return seen, None


@pytest.mark.parametrize("form", MAKERS)
def test_files_that_are_missing_empty_folders_or_forbidden(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"x.{form}"
    with pytest.raises(xs.InputError, match=f"{path} does not exist"):
        read(MAKERS[form](path))
    path.mkdir()
    with pytest.raises(xs.InputError, match=f"{path} is not a file"):
        read(MAKERS[form](path))
    path.rmdir()
    path.write_bytes(b"")
    with pytest.raises(xs.InputError, match=f"{path} is empty"):
        read(MAKERS[form](path))
    path.write_bytes(b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything
        error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        monkeypatch.setattr(Path, "open", Mock(side_effect=error))
    with pytest.raises(xs.InputError, match=f"{path} cannot be read: Permission denied"):
        read(MAKERS[form](path))


@pytest.mark.parametrize("form", [form for form in MAKERS if form not in ("raw", "csv")])
def test_files_of_another_format(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(b"This is a letter and not a recording.\n" * 50)
    with pytest.raises(xs.InputError, match=f"{path} cannot be read as"):
        read(MAKERS[form](path))


@pytest.mark.parametrize("form", ["npy", "parquet", "arrow"])
def test_truncated_files_that_are_noticed_at_once(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    write(MAKERS[form](path), NOISE, rate_hz=8000.0)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(xs.InputError, match=f"{path} cannot be read as"):
        read(MAKERS[form](path))


@pytest.mark.parametrize(
    ("form", "cut", "said"),
    [
        ("raw", 1002, r"byte 198996: the file ends 2 bytes into frame 49749, which has 4"),
        ("wav", 1000, r"the file ends after 49,750 of 50,000 frames"),
        ("arrows", 8, r"the stream has no end"),
    ],
)
def test_what_stands_before_the_end_of_a_truncated_file_arrives(
    form: str, cut: int, said: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{form}"
    write(MAKERS[form](path), NOISE, rate_hz=8000.0)
    path.write_bytes(path.read_bytes()[:-cut])
    seen, error = arrived(MAKERS[form](path, window=1))
    assert isinstance(error, xs.InputError)
    assert error.args[0].startswith(MAKERS[form].__name__)
    with pytest.raises(xs.InputError, match=said):
        raise error
    wanted = NOISE if form == "arrows" else NOISE[: (len(NOISE) * 4 - cut) // 4]
    assert seen == wanted.tolist()
    aside = tmp_path / "aside.jsonl"
    seen, error = arrived(MAKERS[form](path, window=1, on_error="quarantine", quarantine=aside))
    assert error is None
    assert seen == wanted.tolist()
    assert len(aside.read_text().splitlines()) == 1


@pytest.mark.parametrize("form", ["raw.gz", "csv.xz", "arrows.gz", "arrows", "flac", "parquet"])
def test_the_rest_of_a_damaged_file_goes_into_quarantine(form: str, tmp_path: Path) -> None:
    path, aside = tmp_path / f"x.{form}", tmp_path / "aside.jsonl"
    maker = xs.io.wav if form == "flac" else MAKERS[form.split(".")[0]]
    length = {"csv.xz": 30_000, "raw.gz": 300_000}.get(form, 1_500_000)  # several blocks
    noise = np.random.default_rng(20).integers(-99, 99, length) / np.float32(128)
    write(maker(path), noise.astype(np.float32), rate_hz=8000.0, window=10_000)
    whole = path.read_bytes()
    if form == "parquet":  # without its end it cannot be read at all
        path.write_bytes(whole[: 4 * len(whole) // 5] + b"?" + whole[4 * len(whole) // 5 + 1 :])
    else:
        path.write_bytes(whole[: 9 * len(whole) // 10])
    before, error = arrived(maker(path, window=1000))
    assert isinstance(error, xs.InputError)
    assert 0 < len(before) < len(noise)
    assert np.array_equal(before, noise[: len(before)])
    seen, error = arrived(maker(path, window=1000, on_error="quarantine", quarantine=aside))
    assert error is None
    assert seen[: len(before)] == before
    (entry,) = map(json.loads, aside.read_text().splitlines())
    assert (entry["file"], entry["row"]) == (str(path), len(seen))
    path.write_bytes(b"x" * 1000)
    with pytest.raises(xs.InputError, match="cannot be read as"):
        read(maker(path, on_error="quarantine", quarantine=aside))


def test_a_truncated_array_is_read_up_to_its_end_if_bad_input_is_quarantined(
    tmp_path: Path,
) -> None:
    path, aside = tmp_path / "x.npy", tmp_path / "aside.jsonl"
    frames = np.arange(20_000, dtype=np.float32).reshape(-1, 2)
    np.save(path, frames)
    path.write_bytes(path.read_bytes()[:-1001])
    with pytest.raises(xs.InputError, match=r"the file ends after 9,874 of 10,000 frames$"):
        read(xs.io.npy(path))
    source = xs.io.npy(path, layout="rows", on_error="quarantine", quarantine=aside)
    assert read(source) == [list(map(tuple, frames[:9_874].tolist()))]
    assert json.loads(aside.read_text())["frame"] == 9_874
    np.save(path, np.asfortranarray(frames))
    path.write_bytes(path.read_bytes()[:-1001])
    with pytest.raises(xs.InputError, match="cannot be read as an array"):
        read(replace(source))


def test_a_quarantine_begins_empty_and_spares_other_files(tmp_path: Path) -> None:
    path, aside = tmp_path / "x.csv", tmp_path / "aside.jsonl"
    options: dict[str, Any] = {"on_error": "quarantine", "quarantine": aside}
    path.write_text("a\n1\nx\n")
    read(xs.io.csv(path, **options))
    assert len(aside.read_text().splitlines()) == 1
    path.write_text("a\n1\n2\n")
    read(xs.io.csv(path, **options))
    assert aside.read_text() == ""
    with pytest.raises(xs.GraphError, match=r"x\.csv cannot be its own file for bad input"):
        xs.io.csv(path, on_error="quarantine", quarantine=f"{tmp_path}/./x.csv")
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with pytest.raises(xs.InputError, match=r"other\.csv has other contents: choose another"):
        read(xs.io.csv(path, on_error="quarantine", quarantine=other))
    assert other.read_text() == "a\n1\n"
    q = xs.Query()
    for _ in range(2):
        q.source(xs.io.csv(path, **options)).count()
    with pytest.raises(xs.InputError, match=r"another source is writing bad input to .*aside"):
        q.run()


@pytest.mark.parametrize("suffix", ["gz", "xz", "zst"])
@pytest.mark.parametrize("form", ["raw", "csv", "arrows"])
def test_truncated_and_damaged_compressed_files(form: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}.{suffix}"
    write(MAKERS[form](path), NOISE)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    seen, error = arrived(MAKERS[form](path, window=1))
    assert isinstance(error, xs.InputError)
    assert str(path) in str(error)
    assert len(seen) < len(NOISE)
    assert np.float32(seen).tolist() == NOISE[: len(seen)].tolist()
    path.write_bytes(b"this is no archive at all")
    with pytest.raises(xs.InputError, match=str(path)):
        read(MAKERS[form](path))


def test_a_bad_line_is_named_and_those_before_it_have_arrived(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = ["a,b", *(f"{i},{i / 2}" for i in range(100_000))]
    for bad, said in (
        ("7,cat", r"line 70001: column 'b': 'cat' is not float64"),
        ("7", r"line 70001: 1 field instead of 2"),
        ("7,8,9", r"line 70001: 3 fields instead of 2"),
        ("7.5,1", r"line 70001: column 'a': '7.5' is not int64"),
        (",1", r"line 70001: column 'a': '' is not int64"),
    ):
        path.write_text("\n".join([*lines[:70_000], bad, *lines[70_001:]]))
        seen, error = arrived(xs.io.csv(path, dtype={"a": int}, layout="rows"))
        with pytest.raises(xs.InputError, match=f"^csv: {path}: {said}$"):
            raise error or AssertionError("no error")
        assert seen == [(i, i / 2) for i in range(69_999)]


def test_bad_lines_go_into_quarantine_within_a_budget(tmp_path: Path) -> None:
    path, aside = tmp_path / "x.csv", tmp_path / "aside.jsonl"
    numbers = [str(i) for i in range(5_000)]
    for i in (0, 17, 18, 4_999):
        numbers[i] = f"bad{i}"
    path.write_text("value\n" + "\n".join(numbers) + "\n")
    options: dict[str, Any] = {"on_error": "quarantine", "quarantine": aside}
    seen, error = arrived(xs.io.csv(path, budget=4, layout="rows", **options))
    assert error is None
    assert seen == [(float(text),) for text in numbers if text.isdigit()]
    entries = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [entry["line"] for entry in entries] == [2, 19, 20, 5001]
    assert entries[1]["text"] == "bad17"
    assert entries[1]["file"] == str(path)
    seen, error = arrived(xs.io.csv(path, budget=4, **options))
    assert len(seen) == 5_000  # samples keep their places
    assert np.flatnonzero(np.isnan(seen)).tolist() == [0, 17, 18, 4_999]
    seen, error = arrived(xs.io.csv(path, budget=3, layout="rows", **options))
    with pytest.raises(xs.InputError, match=r"line 5001: .* the budget of 3 .* is spent$"):
        raise error or AssertionError("no error")


def test_missing_values_in_columns_without_nan(tmp_path: Path) -> None:
    path, aside = tmp_path / "x.parquet", tmp_path / "aside.jsonl"
    table = pa.table({"n": pa.array([1, 2, None, 4]), "x": pa.array([0.5, None, 1.5, 2.0])})
    pq.write_table(table, path)
    with pytest.raises(xs.InputError, match=r"row 2: column 'n' has no value"):
        read(xs.io.parquet(path))
    source = xs.io.parquet(path, layout="rows", on_error="quarantine", quarantine=aside)
    (rows,) = read(source)
    assert [row[0] for row in rows] == [1, 2, 4]
    assert np.isnan(rows[1][1])


def test_nan_is_kept_refused_or_zero(tmp_path: Path) -> None:
    samples = NOISE.copy()
    samples[[1234, 40_000]] = np.nan
    np.save(tmp_path / "x.npy", samples)
    (kept,) = read(xs.io.npy(tmp_path / "x.npy", window=50_000))
    assert np.isnan(np.asarray(kept[0])[1234])
    (zero,) = read(xs.io.npy(tmp_path / "x.npy", window=50_000, nan="zero"))
    np.testing.assert_array_equal(np.asarray(zero[0]), np.nan_to_num(samples))
    seen, error = arrived(xs.io.npy(tmp_path / "x.npy", window=1, nan="error"))
    assert "sample 1234 is not a number" in str(error)
    assert seen == samples[:1234].tolist()


def test_a_nan_in_any_column_ends_all_of_them(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, float("nan")], "b": [1.0, 2.0, float("nan"), 4.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    seen, error = arrived(xs.io.parquet(tmp_path / "x.parquet", layout="rows", nan="error"))
    assert "sample 2 is not a number" in str(error)
    assert len(seen) == 2


def test_files_that_change_after_the_query_was_declared(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    soundfile.write(path, NOISE, 8000, subtype="FLOAT")
    q = xs.Query()
    q.source(xs.io.wav(path)).count()
    soundfile.write(path, NOISE, 16_000, subtype="FLOAT")
    with pytest.raises(xs.InputError, match=r"has changed since.*at 16000 Hz"):
        q.run()


def test_columns_that_are_unknown_or_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1.0], "name": ["x"]}), path)
    with pytest.raises(xs.InputError, match=r"has no column 'b': it has 'a', 'name'"):
        xs.Query().source(xs.io.parquet(path, columns=["b"]))
    with pytest.raises(xs.InputError, match=r"column 'name' of .* is string, not numbers"):
        xs.Query().source(xs.io.parquet(path))
    assert read(xs.io.parquet(path, columns="a"))[0][0].width == 1


def test_damaged_pages_of_a_parquet_file_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write(xs.io.parquet(path, compression="none"), NOISE)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(xs.InputError, match=r"x\.parquet cannot be read as Parquet: .*CRC"):
        read(xs.io.parquet(path))


def test_arrays_of_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.save(tmp_path / "x.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(xs.InputError, match="cannot be read as an array"):
        read(xs.io.npy(tmp_path / "x.npy"))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"window": 0}, "a window has 1 to"),
        ({"layout": "columns"}, "layout is 'fields', 'streams'"),
        ({"nan": "drop"}, "nan is 'keep', 'error', 'zero'"),
        ({"gap": "skip"}, "gap is 'error', 'join', 'fill'"),
        ({"on_error": "quarantine"}, "are given together"),
        ({"quarantine": "x"}, "are given together"),
        ({"on_error": "quarantine", "quarantine": 5}, "quarantine is a path, not 5"),
        ({"on_error": "quarantine", "quarantine": "x", "budget": 0}, "budget is a whole number"),
    ],
)
def test_options_are_checked_when_they_are_given(options: Any, said: str) -> None:
    with pytest.raises(xs.GraphError, match=said):
        xs.io.npy("x.npy", **options)


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "x.csv"
    with pytest.raises(xs.InputError, match=f"{target} cannot be written: No such file"):
        write(xs.io.csv(target), NOISE)
    if Path("/dev/full").exists():
        (tmp_path / "x.raw.part").symlink_to("/dev/full")
        with pytest.raises(xs.InputError, match=r"x\.raw cannot be written"):
            write(xs.io.raw(tmp_path / "x.raw"), NOISE)
    with pytest.raises(xs.SchemaError, match="a sound file has a whole number of samples"):
        write(xs.io.wav(tmp_path / "x.wav"), NOISE, rate_hz=0.5)


@pytest.mark.parametrize("suffix", ["gz", "xz", "zst"])
@pytest.mark.parametrize("form", ["raw", "csv", "arrows"])
def test_what_stands_before_the_damage_of_a_compressed_file_arrives(
    form: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{form}.{suffix}"
    noise = np.random.default_rng(20).normal(size=200_000).astype(np.float32)
    write(MAKERS[form](path), noise, window=10_000)
    whole = path.read_bytes()
    path.write_bytes(whole[: 9 * len(whole) // 10])
    seen, error = arrived(MAKERS[form](path, window=100))
    with pytest.raises(xs.InputError, match=r"x\..*, after [\d,]+ bytes of contents$"):
        raise error or AssertionError("no error")
    assert len(seen) > len(noise) // 2 or form == "arrows"  # whole batches only
    assert np.float32(seen).tolist() == noise[: len(seen)].tolist()


def test_a_position_in_a_file_that_has_changed_names_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "x.raw"
    for length in (80, 40):
        path.write_bytes(bytes(length))
        q = xs.Query()
        q.source(xs.io.raw(path), name="in").count()
        if length == 80:
            positions = q.run().positions()
    said = r"^in: the file has changed: file_bytes was 80 and is 40$"
    with pytest.raises(xs.InputError, match=said):
        q.run(positions=positions)


def test_a_file_that_is_no_array_is_not_called_pickled(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_text("This is a letter.")
    with pytest.raises(xs.InputError, match=r"does not begin as one in the NPY format does$"):
        read(xs.io.npy(path))


@pytest.mark.parametrize("cut", [None, 40, 4], ids=["whole", "cut off", "its first bytes"])
def test_an_archive_of_arrays_is_refused_and_closed(tmp_path: Path, cut: int | None) -> None:
    np.savez(tmp_path / "whole.npz", a=np.ones(4))
    path = tmp_path / "x.npy"
    path.write_bytes((tmp_path / "whole.npz").read_bytes()[:cut])
    with pytest.raises(xs.InputError, match=r"x\.npy is an archive of arrays, not one array$"):
        read(xs.io.npy(path))
    gc.collect()  # a file that was left open would be an error now


def test_an_error_of_a_socket_names_its_address_once() -> None:
    port = free_port()
    q = xs.Query()
    q.source(xs.io.tcp(port)).count()
    said = rf"^tcp 127\.0\.0\.1:{port} cannot be reached: Connection refused$"
    with pytest.raises(xs.InputError, match=said):
        q.run()
    said = rf"^write tcp 127\.0\.0\.1:{port} cannot be reached: Connection refused$"
    with pytest.raises(xs.InputError, match=said):
        write(xs.io.tcp(port), NOISE)


@pytest.mark.parametrize("name", ["x.arrows", "x.arrows.gz", "x.arrow"])
def test_arrow_batches_that_announce_more_rows_than_they_hold_are_refused(
    name: str, tmp_path: Path
) -> None:
    rows = pa.record_batch({"value": np.arange(40, dtype=np.float32)})
    sink, more = pa.BufferOutputStream(), (40_000).to_bytes(8, "little")
    with (pa.ipc.new_file if name == "x.arrow" else pa.ipc.new_stream)(sink, rows.schema) as writer:
        writer.write_batch(rows)
    data = sink.getvalue().to_pybytes().replace((40).to_bytes(8, "little"), more)
    assert data.count(more) >= 2  # of the batch and of its column
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(xs.InputError, match=r"cannot be read as Arrow IPC: .* too small"):
        read(xs.io.arrow(path))
