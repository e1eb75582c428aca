"""Runs that go on where another one was: positions of sources, committed lengths of sinks."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

import xstream as xs
from tests.io.files import joined, part

NOISE = np.random.default_rng(20).normal(size=60_007).astype(np.float32)
STEREO = np.stack([NOISE, -NOISE], axis=1)
SOURCES = ("npy", "raw", "raw.gz", "wav", "interleaved", "csv", "parquet", "arrow", "arrows")


def source_of(kind: str, folder: Path) -> Any:
    path = folder / f"in.{kind}"
    if kind == "npy":
        np.save(path, NOISE)
        return xs.io.npy(path, rate_hz=8000.0, window=1000)
    if kind == "interleaved":
        soundfile.write(folder / "in.wav", STEREO, 8000, subtype="FLOAT")
        return xs.io.wav(folder / "in.wav", window=999, layout="interleaved")
    if kind == "wav":
        soundfile.write(path, NOISE, 8000, subtype="FLOAT")
        return xs.io.wav(path, window=1000)
    if kind.startswith("raw"):
        q = xs.Query()
        q.source(xs.io.array(NOISE)).write(xs.io.raw(path))
        q.run()
        return xs.io.raw(path, np.float32, 8000.0, window=1000)
    table = pa.table({"x": NOISE})
    if kind == "csv":
        np.savetxt(path, NOISE, header="x", comments="", fmt="%.9g")
        return xs.io.csv(path, rate_hz=8000.0, window=1000, dtype=np.float32)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=7_001)
        return xs.io.parquet(path, 8000.0, window=1000)
    new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with new(path, table.schema) as file:
        file.write_table(table, max_chunksize=1234)
    return xs.io.arrow(path, 8000.0, window=1000)


def stopped_after(windows: int) -> tuple[threading.Event, Any]:
    """An event that is set, once so many windows have come, by a sink."""
    stop = threading.Event()
    seen = 0

    def count(segment: xs.SigSeg) -> None:
        nonlocal seen
        seen += 1
        if seen == windows:
            stop.set()
            time.sleep(0.06)  # a run looks up every 50 ms

    return stop, count


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("form", ["raw", "npy", "wav", "csv", "arrows", "parquet"])
def test_two_runs_write_what_one_would(kind: str, form: str, tmp_path: Path) -> None:
    source = source_of(kind, tmp_path)
    make: Any = {
        "raw": xs.io.raw, "npy": xs.io.npy, "wav": xs.io.wav, "csv": xs.io.csv,
        "parquet": xs.io.parquet,
    }  # fmt: skip
    target = make.get(form, xs.io.arrow)

    def declare(path: Path) -> tuple[xs.Query, Any]:
        q = xs.Query()
        stream = q.source(source, name="in")
        stop, count = stopped_after(9)
        stream.sink(count)
        stream.write(target(path), name="out")
        return q, stop

    q, _ = declare(tmp_path / f"whole.{form}")
    q.run()
    q, stop = declare(tmp_path / f"cut.{form}")
    first = q.run(stop=stop, tuple_burst=1)
    assert first.stopped
    positions = json.loads(json.dumps(first.positions()))
    assert 0 < positions["in"]["sample"] < 2 * len(NOISE)
    assert positions["in"]["sample"] == positions["out"]["stop"]
    q, _ = declare(tmp_path / f"cut.{form}")
    q.run(positions=positions)
    if form == "arrows":  # groups of samples may be cut elsewhere
        whole, cut = (
            pa.ipc.open_stream(tmp_path / f"{name}.arrows").read_all() for name in ("whole", "cut")
        )
        assert whole.equals(cut)
    elif form == "parquet":  # a position ends a row group
        whole, cut = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "cut"))
        assert whole.equals(cut)
    else:
        whole, cut = ((tmp_path / f"{name}.{form}").read_bytes() for name in ("whole", "cut"))
        assert whole == cut


def test_an_output_is_cut_back_to_what_was_committed(tmp_path: Path) -> None:
    """As after a crash: more was written than the position says, and the file has no name yet."""
    path = tmp_path / "x.raw"
    q = xs.Query()
    q.source(xs.io.array(NOISE, window=1000)).write(xs.io.raw(path), name="out")
    position = q.run().positions()["out"]
    path.rename(part(path))
    with part(path).open("ab") as file:
        file.write(b"half a samp")
    q = xs.Query()
    more = xs.io.array(NOISE[:10], window=10, start=len(NOISE))
    q.source(more).write(xs.io.raw(path), name="out")
    q.run(positions={"out": position})
    np.testing.assert_array_equal(np.fromfile(path, "f4"), np.concatenate([NOISE, NOISE[:10]]))


def test_a_paced_source_goes_on_with_what_it_held(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", NOISE)
    source = xs.io.npy(tmp_path / "x.npy", rate_hz=8000.0, window=1000)

    def half(stop: threading.Event | None, positions: Any) -> tuple[Any, xs.Run]:
        q = xs.Query()
        clock = xs.testing.ManualClock()
        stream = q.source(xs.io.paced(source, clock=clock, speed=100.0), name="in")
        out = stream.collect()
        if stop is not None:
            stream.sink(count)
        run = q.run(stop=stop, positions=positions, tuple_burst=1)
        return run[out], run

    stop, count = stopped_after(7)
    first, run = half(stop, None)
    second, _ = half(None, run.positions())
    np.testing.assert_array_equal(joined([*first, *second]), NOISE)


def test_positions_of_other_files_and_operators_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", NOISE)
    q = xs.Query()
    q.source(xs.io.npy(tmp_path / "x.npy"), name="in").count(name="count")
    position = q.run().positions()["in"]
    np.save(tmp_path / "x.npy", NOISE[:-1])
    with pytest.raises(xs.InputError, match="the file has changed"):
        q.run(positions={"in": position})
    with pytest.raises(xs.GraphError, match="count has no position"):
        q.run(positions={"count": position})
    q = xs.Query()
    q.source(xs.io.array(NOISE)).write(xs.io.arrow(tmp_path / "x.arrow"), name="out")
    position = q.run().positions()["out"]
    with pytest.raises(xs.InputError, match="cannot be cut back"):
        q.run(positions={"out": position})


def test_two_runs_do_not_write_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.raw"
    q = xs.Query()
    q.source(xs.io.array(NOISE, window=100)).write(xs.io.raw(path))
    refused: list[str] = []

    def again(segment: xs.SigSeg) -> None:
        if not refused:
            with pytest.raises(xs.InputError, match=r"another run is writing .*x\.raw") as error:
                q.run()
            refused.append(str(error.value))

    other = xs.Query()
    stream = other.source(xs.io.array(NOISE, window=100))
    stream.sink(again)
    stream.write(xs.io.raw(path))
    other.run()
    assert refused
    np.testing.assert_array_equal(np.fromfile(path, "f4"), NOISE)


def test_a_failed_run_leaves_its_output_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("of another run\n")

    def fail(segment: xs.SigSeg) -> None:
        if segment.start == 5000:
            raise RuntimeError("no further")

    q = xs.Query()
    stream = q.source(xs.io.array(NOISE, window=1000))
    stream.write(xs.io.csv(path))
    stream.sink(fail)
    with pytest.raises(xs.OperatorError, match="no further"):
        q.run()
    assert path.read_text() == "of another run\n"
    assert len(part(path).read_text().splitlines()) > 5000


def test_threads_and_files_are_as_before(tmp_path: Path) -> None:
    import os

    np.save(tmp_path / "x.npy", NOISE)
    q = xs.Query()
    q.source(xs.io.npy(tmp_path / "x.npy")).write(xs.io.csv(tmp_path / "x.csv"))
    q.run()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        q.run()
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
