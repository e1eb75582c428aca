"""Damaged checkpoints are recognised, and those of other queries refused."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xstream._native import ffi, lib

import xstream as xs
from tests.recovery.graphs import GRAPHS, results, running
from tests.recovery.interrupted import interrupted_run
from xstream.errors import InputError
from xstream.recovery.format import DamagedError, Front, read_checkpoint


def declared(width: int = 32, window: int = 17, extra: bool = False) -> tuple[xs.Query, Any]:
    q = xs.Query()
    src = q.source(xs.io.array(np.arange(500.0), rate_hz=10.0, window=window))
    out = src.rewindow(width, name="windows").map(running).collect()
    if extra:
        src.count()
    return q, out


def checkpoint(folder: Path) -> Path:
    """The file of a small checkpoint."""
    interrupted_run(declared()[0], 5, folder)
    return next(folder.glob("checkpoint-*"))


def test_the_checksum_is_crc32c() -> None:
    text = ffi.from_buffer(b"123456789")
    assert lib.xs_crc32c(0, text, 9) == 0xE3069283
    assert lib.xs_crc32c(lib.xs_crc32c(0, text, 4), text + 4, 5) == 0xE3069283


def test_what_is_written_is_read(tmp_path: Path) -> None:
    arrays = {"a": np.arange(5, dtype=np.int16), "b": np.zeros((2, 3)), "c": np.empty(0, "u1")}
    mixed = np.zeros(3, [("x", "i4"), ("y", "f8")])
    front = Front.of({"format": 1}, 0, {**arrays, "d": mixed})
    around = ffi.new(
        "xs_around *",
        (ffi.from_buffer(front.before), ffi.from_buffer(front.after), len(front.before),
         len(front.after)),
    )  # fmt: skip
    image = ffi.gc(lib.xs_image_new(), lib.xs_image_drop)
    with (tmp_path / "file").open("wb") as file:
        assert lib.xs_image_write(image, around, file.fileno()) == 0
    stored = read_checkpoint(tmp_path / "file")
    assert stored.manifest["format"] == 1
    assert len(stored.image) == 0
    for name, array in {**arrays, "d": mixed}.items():
        assert stored.arrays[name].dtype == array.dtype
        assert stored.arrays[name].tolist() == array.tolist()


def test_a_file_cut_short_at_any_byte_is_recognised(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    whole, cut = path.read_bytes(), tmp_path / "cut"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(DamagedError):
            read_checkpoint(cut)
    cut.write_bytes(whole + b"\0")
    with pytest.raises(DamagedError):
        read_checkpoint(cut)


def test_flipped_bits_are_recognised(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    whole, flipped = bytearray(path.read_bytes()), tmp_path / "flipped"
    for bit in random.Random(18).sample(range(8 * len(whole)), 2000):
        whole[bit // 8] ^= 1 << bit % 8
        flipped.write_bytes(whole)
        whole[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedError):
            read_checkpoint(flipped)


def test_the_one_before_a_damaged_one_is_used(tmp_path: Path) -> None:
    for number in range(3):
        interrupted_run(declared()[0], 3, tmp_path, resume=number > 0)
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["checkpoint-000002", "checkpoint-000003"]
    latest = tmp_path / kept[-1]
    latest.write_bytes(latest.read_bytes()[:-1])
    query, out = declared()
    run = query.run(tuple_burst=4, checkpoint=tmp_path, resume=True)
    assert run.checkpoints is not None
    assert run.checkpoints.resumed_from == 2
    assert "checkpoint-000003 is damaged" in run.checkpoints.damaged[0]
    query, out = declared()
    assert run[next(iter(_sinks(run)))] == query.run(tuple_burst=4)[out]
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with pytest.raises(InputError, match="can be used"):
        declared()[0].run(tuple_burst=4, checkpoint=tmp_path, resume=True)


def _sinks(run: xs.Run) -> list[Any]:
    from xstream.graph import SinkRef

    return [
        SinkRef(run.query, node.id) for node in run.query.nodes if node.operator.label == "collect"
    ]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            lambda: declared(width=33),
            "the kind of 'windows' was 'rewindow(32)', and is 'rewindow(33)'",
        ),
        (lambda: declared(window=18), "17, and is 18"),
        (lambda: declared(extra=True), "it has 4 operators, and this one has 5"),
        (GRAPHS["related"], "operator 0 was"),
    ],
)
def test_another_query_is_refused(tmp_path: Path, other: Any, said: str) -> None:
    checkpoint(tmp_path)
    with pytest.raises(InputError, match="is a checkpoint of another query") as caught:
        other()[0].run(tuple_burst=4, checkpoint=tmp_path, resume=True)
    assert said in str(caught.value)


def test_another_burst_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    with pytest.raises(InputError, match="taken with tuple_burst=4, not 5"):
        declared()[0].run(tuple_burst=5, checkpoint=tmp_path, resume=True)


def test_one_run_uses_a_folder_at_a_time(tmp_path: Path) -> None:
    query, _ = declared()

    def second(_: xs.Run) -> None:
        with pytest.raises(InputError, match="another run is writing to"):
            declared()[0].run(checkpoint=tmp_path)

    query.run(checkpoint=tmp_path, progress=second)


def test_a_new_run_removes_the_checkpoints_of_earlier_ones(tmp_path: Path) -> None:
    checkpoint(tmp_path)
    (tmp_path / ".checkpoint-000009.1.part").write_bytes(b"of a run that was killed")
    declared()[0].run(checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow  # some runs that go on from a forged image wait for minutes
def test_a_hostile_image_is_refused_or_harmless(tmp_path: Path) -> None:
    """Words of the image are changed, and its checksum is made right."""
    random_ = random.Random(81)
    for name in sorted(GRAPHS.keys() - {"kernels"}):  # which use their own state as indices
        folder = tmp_path / name
        interrupted_run(GRAPHS[name]()[0], 20, folder)
        path = next(folder.glob("checkpoint-*"))
        whole = path.read_bytes()
        stored = read_checkpoint(path)
        size = len(stored.image)
        begin = whole.index(bytes(stored.image)) if size else 0
        for _ in range(25):
            forged = bytearray(whole)
            at = begin + 8 * random_.randrange(size // 8)
            value = random_.choice([-1, 0, 1, 2**62, -(2**63), 2**63 - 1, random_.getrandbits(40)])
            forged[at : at + 8] = value.to_bytes(8, "little", signed=True)
            crc = lib.xs_crc32c(0, ffi.from_buffer(forged), len(forged) - 4)
            forged[-4:] = crc.to_bytes(4, "little")
            path.write_bytes(forged)
            query, sinks = GRAPHS[name]()
            try:
                run = query.run(tuple_burst=4, checkpoint=folder, resume=True)
                results(run, sinks)
            except xs.XStreamError:
                pass
            for extra in folder.glob("checkpoint-*"):
                if extra != path:
                    os.unlink(extra)
