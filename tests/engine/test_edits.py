"""Edits in place: `seg.edit(consume=True)` in Python operators, against plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs

SCHEDULERS = ("fifo", "fifo-slice", "rtc", "df")
MANAGERS = ("copy-always", "refcount-copy", "refcount-realloc", "refcount-lazy")


@xs.kernel(each=True)
def copied(x):
    return x + np.float32(0.0)


class Edit:
    """Multiplies a window, keeping whatever reference it is told to keep."""

    def __init__(self, factor: float, kept: str) -> None:
        self.factor, self.kept = factor, kept
        self.held: list[tuple[Any, list[float]]] = []

    def __call__(self, seg: xs.SigSeg) -> xs.SigSeg:
        values = np.asarray(seg).tolist()
        if self.kept == "array":
            self.held.append((np.asarray(seg), values))
        elif self.kept == "segment":
            self.held.append((seg.subseg(seg.start, seg.width), values))
        elif self.kept == "share":
            self.held.append((seg.share(), values))
        with seg.edit(consume=True) as e:
            e.array[:] *= np.float32(self.factor)
        if self.kept == "result":
            self.held.append((e.segment, np.asarray(e.segment).tolist()))
        return e.segment

    def check(self) -> None:
        for held, values in self.held:
            assert np.asarray(held).tolist() == values


KEPT = ("nothing", "array", "segment", "share", "result")


@settings(max_examples=25, deadline=None)
@given(
    width=st.integers(1, 60), window=st.integers(1, 9), joined=st.integers(0, 14),
    edits=st.lists(st.tuples(st.sampled_from((0.5, 2.0, -1.0)), st.sampled_from(KEPT)), max_size=4),
    taps=st.lists(st.booleans(), min_size=4, max_size=4),
    scheduler=st.sampled_from(SCHEDULERS), manager=st.sampled_from(MANAGERS),
    threads=st.integers(1, 2),
)  # fmt: skip
def test_an_edit_changes_nothing_that_others_see(
    width: int, window: int, joined: int, edits: list[tuple[float, str]], taps: list[bool],
    scheduler: str, manager: str, threads: int,
) -> None:  # fmt: skip
    signal = np.random.default_rng(width).normal(size=width).astype(np.float32)
    original = signal.copy()
    q = xs.Query()
    stream = q.source(xs.io.array(signal, window=window)).map(copied)
    if joined:
        stream = stream.rewindow(joined)
    operators, seen, factor = [], [], np.float32(1.0)
    for (by, kept), tapped in zip(edits, taps, strict=False):
        if tapped:  # another consumer of the same windows
            seen.append((stream.collect(), factor))
        operators.append(Edit(by, kept))
        stream = stream.map(operators[-1])
        factor *= np.float32(by)
    seen.append((stream.collect(), factor))
    run = q.run(scheduler=scheduler, memory=manager, threads=threads)
    for out, factor in seen:
        for seg in run[out]:
            expected = original[seg.start : seg.stop] * factor
            assert np.asarray(seg).tolist() == expected.tolist()
    assert signal.tolist() == original.tolist()
    for operator in operators:
        operator.check()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_only_owner_edits_in_place(scheduler: str) -> None:
    q = xs.Query()
    stream = q.source(xs.io.array(np.ones(64, np.float32), window=8)).map(copied)
    for _ in range(3):
        stream = stream.map(Edit(2.0, "nothing"))
    out = stream.collect()
    run = q.run(scheduler=scheduler)
    assert [np.asarray(seg).tolist() for seg in run[out]] == [[8.0] * 8] * 8
    assert run.memory.edits == 24
    assert run.memory.copied_for["edit"] == 0


def test_a_recording_is_copied_before_it_is_edited() -> None:
    signal = np.ones(64, np.float32)
    q = xs.Query()
    out = q.source(xs.io.array(signal, window=8)).map(Edit(2.0, "nothing")).collect()
    run = q.run()
    assert run.memory.copied_for["edit"] == signal.nbytes
    assert [np.asarray(seg).tolist() for seg in run[out]] == [[2.0] * 8] * 8
    assert (signal == 1.0).all()


def test_a_consumed_segment_says_so() -> None:
    seg = xs.SigSeg(np.arange(3, dtype=np.float32))
    with seg.edit(consume=True) as e:
        e.array[1] = 7.0
    assert np.asarray(e.segment).tolist() == [0.0, 7.0, 2.0]
    assert repr(seg) == "<SigSeg, consumed>"
    for use in (
        lambda: seg.width, lambda: len(seg), lambda: seg[0], lambda: np.asarray(seg),
        lambda: seg.edit(), lambda: seg.edit(consume=True), lambda: e.segment.append(seg),
        lambda: seg.append(e.segment), lambda: list(seg), lambda: seg == e.segment,
    ):  # fmt: skip
        with pytest.raises(xs.SigSegError, match="consumed by edit"):
            use()


def test_an_operator_that_passes_on_what_it_consumed_is_named() -> None:
    def forgetful(seg: xs.SigSeg) -> xs.SigSeg:
        seg.edit(consume=True).commit()
        return seg

    q = xs.Query()
    q.source(xs.io.array(np.ones(4, np.float32))).map(copied).map(forgetful).collect()
    with pytest.raises(xs.XStreamError, match="forgetful"):
        q.run()


def test_an_edit_that_raises_discards_the_samples() -> None:
    def failing(seg: xs.SigSeg) -> xs.SigSeg:
        with seg.edit(consume=True) as e:
            e.array[:] = 9.0
            raise ValueError("no")

    q = xs.Query()
    before = q.source(xs.io.array(np.ones(4, np.float32))).map(copied)
    before.map(failing).collect()
    with pytest.raises(xs.XStreamError, match="failing"):
        q.run()
