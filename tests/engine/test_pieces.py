"""Kernels that walk the pieces of a segment: the same results, and nothing is made contiguous."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from xstream.kernels.pieces import Pieces

MANAGERS = ("copy-always", "refcount-copy", "refcount-realloc", "refcount-lazy")


@xs.kernel(out={"width": int, "pieces": int, "last": float}, pieces=True)
def walked(window, out):
    """The samples folded in order, which shows every mistake in position or order."""
    width, last, pieces = 0, 0.0, 0
    for piece in window.pieces():
        for i in range(len(piece)):
            last = 0.5 * last + piece[i]
        width += len(piece)
        pieces += 1
    out.emit(width, pieces, last)


@xs.kernel(out={"width": int, "last": float}, pieces=True)
def in_parts(window, n, step, out):
    """Parts that begin at every `step`-th sample, so that they overlap and cross pieces."""
    width, last = 0, 0.0
    for first in range(0, len(window) + 1, step):
        part = window.part(first, n)
        for i in range(len(part)):
            last = 0.75 * last + part[i]
        width += len(part)
    out.emit(width, last)


@xs.kernel(pieces=True)
def too_far(window):
    return window.part(len(window) + 1, 1).sum()


def folded(samples: Any, factor: float) -> float:
    last = 0.0
    for x in samples.tolist():
        last = factor * last + x
    return last


def wide_windows(q: xs.Query, samples: Any, piece: int, window: int) -> xs.Stream:
    return q.source(xs.io.array(samples, window=piece)).map(shifted).rewindow(window)


@xs.kernel(each=True)
def shifted(x):
    return x + np.float32(1.0)  # into blocks of its own, or neighbours would join to one range


@settings(max_examples=25, deadline=None)
@given(
    samples=st.integers(1, 300), piece=st.integers(1, 40), window=st.integers(1, 90),
    n=st.integers(0, 70), step=st.integers(1, 33), manager=st.sampled_from(MANAGERS),
    fuse=st.booleans(),
)  # fmt: skip
def test_pieces_and_parts_are_the_samples_in_order(
    samples: int, piece: int, window: int, n: int, step: int, manager: str, fuse: bool
) -> None:
    signal = np.random.default_rng(samples).normal(size=samples).astype(np.float32)
    q = xs.Query()
    windows = wide_windows(q, signal, piece, window)
    whole, walks = windows.collect(), windows.iterate(walked).collect()
    parts = windows.iterate(in_parts, n, step).passed().collect()
    run = q.run(memory=manager, fuse=fuse)
    assert len(run[walks]) == len(run[parts]) == len(run[whole])
    for seg, walk, part in zip(run[whole], run[walks], run[parts], strict=True):
        array = np.asarray(seg)
        assert walk[0] == len(array)
        assert walk[2] == folded(array, 0.5)
        taken = [array[first : first + n] for first in range(0, len(array) + 1, step)]
        assert part == (sum(map(len, taken)), folded(np.concatenate(taken), 0.75))
        plain = Pieces([array[:1], array[1:1], array[1:]])
        again = [plain.part(first, n) for first in range(0, len(array) + 1, step)]
        assert [x.tolist() for x in again] == [x.tolist() for x in taken]


@pytest.mark.parametrize("fuse", [True, False])
def test_a_walked_segment_stays_in_pieces(fuse: bool) -> None:
    signal = np.arange(4096, dtype=np.float32)
    q = xs.Query()
    windows = wide_windows(q, signal, 16, 1024)
    walks = windows.iterate(walked).collect()
    for statistic in (windows.mean(), windows.std(), windows.energy(), windows.stats()):
        statistic.count()
    windows.std_above(1.0).mean_below(1e9).fir([1.0, 0.5]).count()
    windows.threshold(2.0).count()
    run = q.run(memory="refcount-lazy", fuse=fuse)
    assert [walk[1] for walk in run[walks]] == [64] * 4
    assert run.memory.materialisations == 0


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("width", [1, 4095, 4096, 4097, 9000])
def test_the_bits_of_a_result_do_not_depend_on_the_pieces(width: int, fuse: bool) -> None:
    signal = np.random.default_rng(width).normal(3.0, 9.0, 2 * width).astype(np.float32)
    found = []
    for piece in (width, 7, 1000):
        q = xs.Query()
        windows = wide_windows(q, signal, min(piece, width), width)
        statistics = windows.stats().collect(), windows.std().collect(), windows.mean().collect()
        ranges = windows.threshold(8.0, absolute=True).collect()
        filtered = windows.fir([0.5, 0.25, -1.0, 0.125, 3.0]).collect()
        run = q.run(fuse=fuse)
        filtered_samples = np.concatenate([np.asarray(seg) for seg in run[filtered]])
        found.append(([run[one] for one in statistics], run[ranges], filtered_samples.tobytes()))
    assert found[0] == found[1] == found[2]


def test_a_part_begins_inside_of_its_segment() -> None:
    q = xs.Query()
    q.source(xs.io.array(np.zeros(4, np.float32))).map(too_far).count()
    with pytest.raises(xs.XStreamError, match="a part of a segment begins outside"):
        q.run()
    with pytest.raises(IndexError, match="begins outside"):
        too_far(np.zeros(4))


def test_pieces_have_no_meaning_for_single_samples() -> None:
    with pytest.raises(xs.KernelError, match="pieces=True has no meaning"):

        @xs.kernel(each=True, pieces=True)
        def gain(x):
            return x
