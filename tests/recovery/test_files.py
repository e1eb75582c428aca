"""Files: an input is read on from where it was, an output is cut back and continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import xstream as xs
from tests.recovery.graphs import running
from tests.recovery.interrupted import interrupted_run
from xstream.errors import GraphError

FORMS: dict[str, Any] = {
    "csv": xs.io.csv, "npy": xs.io.npy, "raw": xs.io.raw, "wav": xs.io.wav, "arrows": xs.io.arrow,
    "parquet": xs.io.parquet,
}  # fmt: skip
NOISE = np.random.default_rng(3).normal(size=30_000).astype(np.float32)


def declared(folder: Path, form: str) -> xs.Query:
    np.save(folder / "in.npy", NOISE)
    q = xs.Query()
    src = q.source(xs.io.npy(folder / "in.npy", rate_hz=8000.0, window=50))
    src.rewindow(64).write(FORMS[form](folder / f"out.{form}"))
    src.map(running).write(xs.io.csv(folder / "sums.csv"))
    return q


def contents(path: Path) -> Any:
    """The bytes of a file; of Arrow and Parquet the rows, because batches are cut by time."""
    if path.suffix == ".parquet":
        return pq.read_table(path, page_checksum_verification=True).to_pydict()
    if path.suffix != ".arrows":
        return path.read_bytes()
    with pa.ipc.open_stream(path) as stream:
        return stream.read_all().to_pydict()


@pytest.mark.parametrize("form", FORMS)
def test_outputs_are_those_of_one_run(form: str, tmp_path: Path) -> None:
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    whole.mkdir()
    pieces.mkdir()
    declared(whole, form).run(tuple_burst=4)
    for number in range(3):
        interrupted_run(declared(pieces, form), 30, tmp_path / "points", resume=number > 0)
        assert (pieces / f"out.{form}.part").exists(), "an incomplete output has another name"
        assert not (pieces / f"out.{form}").exists()
        for part in pieces.glob("*.part"):  # as a crash leaves it
            with part.open("ab") as file:
                file.write(b"more than was committed")
    declared(pieces, form).run(tuple_burst=4, checkpoint=tmp_path / "points", resume=True)
    for name in (f"out.{form}", "sums.csv"):
        assert contents(pieces / name) == contents(whole / name)
    # Once more after the end: it goes on from the last checkpoint, with the same result.
    declared(pieces, form).run(tuple_burst=4, checkpoint=tmp_path / "points", resume=True)
    assert contents(pieces / f"out.{form}") == contents(whole / f"out.{form}")


def test_a_file_that_cannot_be_cut_back_is_refused(tmp_path: Path) -> None:
    q = xs.Query()
    q.source(xs.io.array(NOISE)).write(xs.io.arrow(tmp_path / "out.arrow"))
    with pytest.raises(GraphError, match="cannot be cut back"):
        q.run(checkpoint=tmp_path / "points")
