"""Tables: csv, parquet and arrow files, read and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.io.files import WAYS, leaves_nothing, read, samples_of, write

RNG = np.random.default_rng(18)
COLUMNS = {
    "left": RNG.normal(size=20_003),
    "right": RNG.normal(size=20_003).astype(np.float32),
    "count": RNG.integers(-(2**40), 2**40, 20_003),
    "flag": RNG.integers(0, 2, 20_003).astype(bool),
}
FORMS = ("csv", "csv.gz", "csv.xz", "csv.zst", "parquet", "arrow", "arrows", "arrows.gz")
TYPES = {name: column.dtype for name, column in COLUMNS.items()}


def table_file(path: Path, **options: Any) -> Any:
    make: Callable[..., Any] = xs.io.arrow
    if ".csv" in path.name:
        make, options = xs.io.csv, {"dtype": TYPES, **options}
    elif ".parquet" in path.name:
        make = xs.io.parquet
    return make(path, **options)


def written(path: Path, **columns: Any) -> Path:
    q = xs.Query()
    streams = [q.source(xs.io.array(each, rate_hz=100.0)) for each in columns.values()]
    zipped = streams[0].zip(*streams[1:]) if len(streams) > 1 else streams[0]
    zipped.write(table_file(path, columns=tuple(columns)))
    q.run()
    return path


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read_again(form: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"t.{form}", **COLUMNS)
    found = samples_of(table_file(path, window=1000))
    for column, wanted in zip(found, COLUMNS.values(), strict=True):
        np.testing.assert_array_equal(column, wanted)
        assert column.dtype == wanted.dtype
    chosen = samples_of(table_file(path, columns=["count", "left"], layout="streams"))
    np.testing.assert_array_equal(chosen[0], COLUMNS["count"])
    np.testing.assert_array_equal(chosen[1], COLUMNS["left"])
    (rows,) = read(table_file(path, columns=["flag", "count"], layout="rows"))
    assert rows == list(zip(COLUMNS["flag"].tolist(), COLUMNS["count"].tolist(), strict=True))


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_the_rate_goes_with_the_file(form: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"t.{form}", left=COLUMNS["left"])
    (segments,) = read(table_file(path))
    assert segments[0].timebase == xs.Timebase(100.0)
    (segments,) = read(table_file(path, rate_hz=50.0))
    assert segments[0].timebase == xs.Timebase(50.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_every_way_to_run_reads_the_same(form: str, way: Any, tmp_path: Path) -> None:
    path = written(tmp_path / f"t.{form}", left=COLUMNS["left"], right=COLUMNS["right"])
    found = samples_of(table_file(path, window=777), *way)
    np.testing.assert_array_equal(found[0], COLUMNS["left"])
    np.testing.assert_array_equal(found[1], COLUMNS["right"])
    leaves_nothing(lambda q: q.source(table_file(path, window=777)).count(), *way)


def test_batches_of_other_writers_and_of_any_size(tmp_path: Path) -> None:
    table = pa.table({"x": COLUMNS["left"], "y": COLUMNS["count"]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=7_001)
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=313)
    with pa.ipc.new_stream(tmp_path / "t.arrows", table.schema) as file:
        file.write_table(table, max_chunksize=313)
    for source in (xs.io.parquet(tmp_path / "t.parquet"), xs.io.arrow(tmp_path / "t.arrow"),
                   xs.io.arrow(tmp_path / "t.arrows")):  # fmt: skip
        found = samples_of(source)
        np.testing.assert_array_equal(found[0], COLUMNS["left"])
        np.testing.assert_array_equal(found[1], COLUMNS["count"])


def test_the_format_of_table_one(tmp_path: Path) -> None:
    """The paper's recording: a text file with one sample a line, without a header."""
    samples = RNG.normal(size=5000).astype(np.float32)
    path = tmp_path / "counting.csv"
    np.savetxt(path, samples, fmt="%.9g")
    source = xs.io.csv(path, rate_hz=44_100.0, header=False, dtype=np.float32, window=1000)
    (segments,) = read(source)
    assert (
        str(segments[0])
        == "<SigSeg 1000 samples [0, 1000) float32 at 44100 Hz, 1 piece, refcount-lazy>"
    )
    np.testing.assert_array_equal(samples_of(source)[0], samples)


def test_indices_tell_where_samples_were(tmp_path: Path) -> None:
    q = xs.Query()
    ranges = q.source(xs.io.iterable([(2, 4), (7, 9)], out=(int, int)))
    q.source(xs.io.array(np.arange(10), window=5)).gate(ranges).write(
        xs.io.csv(tmp_path / "some.csv", index=True)
    )
    q.run()
    text = (tmp_path / "some.csv").read_text()
    assert text == "index,value\n2,2\n3,3\n7,7\n8,8\n"


def test_gaps_are_an_error_or_joined_or_filled(tmp_path: Path) -> None:
    def gapped(gap: str) -> str:
        q = xs.Query()
        ranges = q.source(xs.io.iterable([(2, 4), (7, 9)], out=(int, int)))
        target = xs.io.csv(tmp_path / "some.csv", gap=gap, header=False)
        q.source(xs.io.array(np.arange(10.0), window=5)).gate(ranges).write(target)
        q.run()
        return (tmp_path / "some.csv").read_text()

    assert gapped("join").split() == ["2", "3", "7", "8"]
    assert gapped("fill").split() == ["2", "3", "nan", "nan", "nan", "7", "8"]
    with pytest.raises(
        xs.InputError, match=r"write csv.*: there is a gap of 3 samples before sample 7"
    ):
        gapped("error")
    assert (tmp_path / "some.csv").read_text().split() == ["2", "3", "nan", "nan", "nan", "7", "8"]
    assert (tmp_path / "some.csv.part").exists()


def test_overlaps_are_not_filled(tmp_path: Path) -> None:
    q = xs.Query()
    overlapping = q.source(xs.io.array(np.arange(10.0), window=5)).rewindow(4, gap=-2)
    overlapping.write(xs.io.csv(tmp_path / "some.csv", gap="fill"))
    with pytest.raises(xs.InputError, match="an overlap of 2 samples before sample 2"):
        q.run()


def test_tuples_of_scalars_are_rows(tmp_path: Path) -> None:
    q = xs.Query()
    rows = [(True, i, i / 7, i % 100) for i in range(20_000)]
    schema = {"keep": bool, "n": int, "x": float, "small": "uint8"}
    stream = q.source(xs.io.iterable(rows, out=schema))
    for form in ("csv", "parquet", "arrow"):
        stream.write(table_file(tmp_path / f"rows.{form}"))
    q.run()
    types = {"keep": bool, "n": int, "small": np.uint8}
    for form in ("csv", "parquet", "arrow"):
        more = {"dtype": types} if form == "csv" else {}
        assert read(table_file(tmp_path / f"rows.{form}", layout="rows", **more)) == [rows]


def test_mixed_fields_are_refused_when_they_are_declared(tmp_path: Path) -> None:
    q = xs.Query()
    stream = q.source(xs.io.array(np.arange(10.0), window=5)).silence(0.1)
    segments = q.source(xs.io.array(np.arange(10.0), window=5)).zip(stream)
    with pytest.raises(xs.SchemaError, match=r"write csv, port 'in': needs fields that are all"):
        segments.write(xs.io.csv(tmp_path / "x.csv"))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.floats(width=64, allow_nan=True) | st.integers(-10, 10), max_size=40),
    st.booleans(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 50),
)  # fmt: skip
def test_csv_is_read_as_python_reads_it(
    tmp_path: Path, numbers: list[float], header: bool, newline: str, last: bool, window: int
) -> None:
    lines = ["x"] * header + [repr(number) for number in numbers]
    path = tmp_path / "x.csv"
    path.write_bytes((newline.join(lines) + newline * last).encode())
    if not lines:
        return
    source = xs.io.csv(path, header=header, window=window)
    (segments,) = read(source)
    found = [sample for segment in segments for sample in np.asarray(segment).tolist()]
    np.testing.assert_array_equal(found, np.array(numbers, float))


def test_lines_that_chunks_cut_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    samples = RNG.normal(size=3000)
    write(xs.io.csv(tmp_path / "x.csv"), samples)
    monkeypatch.setattr(sys.modules["xstream.io.csv"], "CHUNK_BYTES", 101)
    np.testing.assert_array_equal(samples_of(xs.io.csv(tmp_path / "x.csv"))[0], samples)
