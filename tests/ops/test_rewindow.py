"""rewindow and dewindow against their definitions, on streams cut anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import placement
from xstream.ops.dewindow import Dewindow
from xstream.ops.rewindow import Rewindow
from xstream.testing import CutSignal, list_source, run_operator, signals

RECORD = np.dtype([("vid", np.int32), ("speed", np.float32)])
DTYPES = (np.float32, np.int16, np.complex64, RECORD)


def same(placed: Any, expected: list[tuple[int, Any]]) -> bool:
    return len(placed) == len(expected) and all(
        window.start == start and window.samples.tobytes() == samples.tobytes()
        for window, (start, samples) in zip(placed, expected, strict=True)
    )


@st.composite
def width_and_gap(draw: st.DrawFn) -> tuple[int, int]:
    width = draw(st.integers(1, 60))
    return width, draw(st.integers(1 - width, 40))


@settings(max_examples=25)
@given(signals(DTYPES), width_and_gap(), st.booleans())
def test_rewindow_equals_its_definition(
    everywhere: Callable[..., Any], signal: CutSignal, shape: tuple[int, int], flush: bool
) -> None:
    width, gap = shape
    placed = everywhere(Rewindow(width, gap, flush), signal)
    assert same(placed, placement.rewindow(signal.samples, signal.start, width, gap, flush))


@settings(max_examples=15)
@given(signals(DTYPES), width_and_gap())
def test_dewindow_is_the_inverse_of_an_overlapping_rewindow(
    everywhere: Callable[..., Any], signal: CutSignal, shape: tuple[int, int]
) -> None:
    width, gap = shape
    windows = placement.rewindow(signal.samples, signal.start, width, min(gap, 0), True)
    segments = [xs.SigSeg(samples, start) for start, samples in windows]
    placed = everywhere(Dewindow(), list_source(segments, xs.Segment(signal.samples.dtype)))
    assert same(placed, placement.dewindow(windows))
    joined = b"".join(window.samples.tobytes() for window in placed)
    assert joined == signal.samples.tobytes()


@settings(max_examples=10)
@given(signals(max_width=80), st.integers(1, 30), st.integers(1, 30))
def test_rewindow_takes_overlapping_input(
    everywhere: Callable[..., Any], signal: CutSignal, inner: int, outer: int
) -> None:
    overlapping = placement.rewindow(signal.samples, signal.start, inner, -(inner // 2), True)
    segments = [xs.SigSeg(samples, start) for start, samples in overlapping]
    placed = everywhere(Rewindow(outer), list_source(segments, xs.Segment(np.float32)))
    assert same(placed, placement.rewindow(signal.samples, signal.start, outer, 0, False))


@pytest.mark.parametrize("operator", [Rewindow(4), Rewindow(4, -1, True), Dewindow()])
def test_empty_streams_and_streams_of_nulls_give_nothing(
    everywhere: Callable[..., Any], operator: Any
) -> None:
    assert everywhere(operator, list_source([], xs.Segment(np.float32))) == []
    nulls = CutSignal(np.empty(0, np.float32), 7, cuts=(0, 0, 0))
    assert everywhere(operator, nulls) == []


def test_one_sample_stream(everywhere: Callable[..., Any]) -> None:
    one = CutSignal(np.float32([3.0]), 5)
    assert same(everywhere(Rewindow(1), one), [(5, np.float32([3.0]))])
    assert everywhere(Rewindow(2), one) == []
    assert same(everywhere(Rewindow(2, flush=True), one), [(5, np.float32([3.0]))])


def test_a_window_larger_than_any_buffer_just_works() -> None:
    samples = np.arange(300_000, dtype=np.int32)
    for memory in xs.MANAGER_NAMES:
        q = xs.Query()
        out = q.source(xs.io.array(samples, window=4096)).rewindow(250_000).collect()
        run = q.run(memory=memory)
        assert (np.asarray(run[out][0]) == samples[:250_000]).all()


@pytest.mark.parametrize("operator", [Rewindow(8), Dewindow()])
@pytest.mark.parametrize(
    ("second", "words"),
    [((12, 4), "[12, 16) leaves a gap behind [0, 10)"), ((-3, 4), "[-3, 1) goes back before")],
)
def test_a_gap_and_a_step_back_are_errors_that_name_both_ranges(
    fails_everywhere: Callable[..., str], operator: Any, second: tuple[int, int], words: str
) -> None:
    start, width = second
    stream = [xs.SigSeg(np.zeros(10, np.int8), 0), xs.SigSeg(np.zeros(width, np.int8), start)]
    message = fails_everywhere(operator, stream)
    assert words in message
    assert message.startswith(f"{operator.label}, port 'in', tuple (<SigSeg")


def test_the_accumulator_is_trimmed_so_memory_does_not_grow_with_the_stream() -> None:
    for memory in xs.MANAGER_NAMES:
        peaks = []
        for repeat in (10, 100):
            q = xs.Query()
            source = xs.io.array(np.zeros(10_000, np.float32), window=700, repeat=repeat)
            q.source(source).rewindow(1000, -300).count()
            peaks.append(q.run(memory=memory).memory.peak_bytes)
        assert peaks[1] <= 1.5 * peaks[0], (memory, peaks)


@pytest.mark.parametrize("gap", [-5, -1, 0, 1, 8, 11])
def test_windows_that_come_in_that_width_already(everywhere: Callable[..., Any], gap: int) -> None:
    signal = CutSignal(np.arange(80, dtype=np.int16), 3, cuts=tuple(range(8, 80, 8)))
    placed = everywhere(Rewindow(8, gap), signal)
    assert same(placed, placement.rewindow(signal.samples, 3, 8, gap, False))


def test_a_stream_of_windows_of_that_width_is_handed_on_without_cutting() -> None:
    q = xs.Query()
    q.source(xs.io.array(np.zeros(8192, np.float32), window=1024)).rewindow(1024).count()
    assert q.run().memory.subsegs == 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ((0, 0), "rewindow: width is at least 1, not 0"),
        ((4, -4), "gap of -4 with a width of 4 never moves on"),
        ((4.5, 0), "rewindow: width is a whole number, not 4.5"),
        ((True, 0), "whole number"),
    ],
)
def test_bad_parameters_are_refused_when_declared(parameters: Any, words: str) -> None:
    with pytest.raises(xs.GraphError, match=words):
        Rewindow(*parameters)


def test_only_streams_of_segments_can_be_rewindowed() -> None:
    with pytest.raises(xs.SchemaError, match=r"rewindow\(4\), port 'in': needs a stream of segm"):
        run_operator(Rewindow(4), [1, 2, 3])
