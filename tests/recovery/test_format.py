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
from xstream.recovery import checkpoints
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


VALUES = (-1, 0, 1, 2**62, -(2**63), 2**63 - 1, 2**39 + 5)


class Forger:
    """Changes words of the image of a checkpoint, and makes its checksum right."""

    def __init__(self, name: str, folder: Path) -> None:
        self.declare, self.folder = GRAPHS[name], folder
        self.refused: xs.XStreamError | None = None
        interrupted_run(self.declare()[0], 20, folder)
        self.path = next(folder.glob("checkpoint-*"))
        self.whole = self.path.read_bytes()
        stored = read_checkpoint(self.path)
        self.words = len(stored.image) // 8
        self.begin = self.whole.index(bytes(stored.image)) if self.words else 0

    def try_out(self, word: int, value: int) -> None:
        """Go on from the forged checkpoint: the run comes to an end, or it is refused."""
        forged = bytearray(self.whole)
        at = self.begin + 8 * word
        forged[at : at + 8] = value.to_bytes(8, "little", signed=True)
        crc = lib.xs_crc32c(0, ffi.from_buffer(forged), len(forged) - 4)
        forged[-4:] = crc.to_bytes(4, "little")
        self.path.write_bytes(forged)
        query, sinks = self.declare()
        self.refused = None
        try:
            results(query.run(tuple_burst=4, checkpoint=self.folder, resume=True), sinks)
        except xs.XStreamError as error:
            self.refused = error
        for extra in self.folder.glob("checkpoint-*"):
            if extra != self.path:
                os.unlink(extra)


@pytest.mark.slow  # hundreds of runs
def test_a_hostile_image_is_refused_or_harmless(tmp_path: Path) -> None:
    random_ = random.Random(81)
    for name in sorted(GRAPHS.keys() - {"kernels"}):  # which use their own state as indices
        forger = Forger(name, tmp_path / name)
        for _ in range(25):
            value = random_.choice([*VALUES, random_.getrandbits(40)])
            forger.try_out(random_.randrange(forger.words), value)


def test_no_word_of_an_image_makes_a_paced_source_wait_for_ever(tmp_path: Path) -> None:
    """The rounds, positions and times of a source, and of a tuple that it holds."""
    forger = Forger("paced", tmp_path)
    for word in range(27):
        for value in (-1, -(2**40), 2**40):
            forger.try_out(word, value)


def test_a_source_is_not_read_more_often_than_declared(tmp_path: Path) -> None:
    forger = Forger("paced", tmp_path)
    image = np.frombuffer(forger.whole, "<i8", forger.words, forger.begin)
    length = int(np.flatnonzero(image == 600)[0])  # of the recording; then where it is read
    assert image[length + 1 : length + 4].tolist() == [90, 90, 1]  # position, index, rounds left
    for value in (-1, 0, 2):
        forger.try_out(length + 3, value)
        assert "a number is out of range" in str(forger.refused)
    for word, value in ((1, 105), (2, 105)):
        forger.try_out(length + word, value)
        assert "its next sample has another index" in str(forger.refused)
    forger.try_out(length + 3, 1)
    assert forger.refused is None


def test_an_image_that_is_refused_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython crashes if it collects a memoryview together with what still uses it."""
    forger, load, loaded = Forger("paced", tmp_path), checkpoints._load_image, []
    monkeypatch.setattr(
        checkpoints,
        "_load_image",
        lambda built, stored: (loaded.append(stored), load(built, stored)),
    )
    forger.try_out(17, -1)
    assert "cannot be loaded" in str(forger.refused)
    loaded[0].image.release()  # a BufferError while the image is in use


def test_what_is_to_end_the_program_is_no_error_of_an_operator() -> None:
    """A clock, a source and an operator run in callbacks; a limit of pytest may arrive there."""

    class Clock(xs.testing.ManualClock):
        def wait(self, seconds: float, stop: Any) -> None:
            raise SystemExit(7)

    def ending(_: object) -> int:
        raise SystemExit(7)

    for paces in (True, False):
        q = xs.Query()
        recording = xs.io.array(np.zeros(64), rate_hz=8.0, window=8)
        if paces:
            q.source(xs.io.paced(recording, clock=Clock())).count()
        else:
            q.source(recording).map(ending, out=int).count()
        with pytest.raises(SystemExit):
            q.run()
