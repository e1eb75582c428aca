"""gate, sync and deinterleave: ranges and channels cut out of signals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import placement
from xstream.ops.deinterleave import Deinterleave
from xstream.ops.gate import Gate
from xstream.ops.sync import Sync
from xstream.testing import CutSignal, list_source, run_operator, signals

CONTROL = {"keep": bool, "start": int, "stop": int}


@st.composite
def ranges_in_order(draw: st.DrawFn, first: int, span: int) -> list[tuple[bool, int, int]]:
    starts = sorted(draw(st.lists(st.integers(first - 20, first + span + 20), max_size=12)))
    return [
        (draw(st.booleans()), start, start + draw(st.integers(-2, span // 2 + 5)))
        for start in starts
    ]


@settings(max_examples=30)
@given(st.data(), signals((np.float32, np.int16)))
def test_gate_passes_what_lies_inside(
    everywhere: Callable[..., Any], data: st.DataObject, signal: CutSignal
) -> None:
    ranges = data.draw(ranges_in_order(signal.start, len(signal.samples)))
    passed = everywhere(Gate(), list_source(ranges, CONTROL), signal)
    by_index = {
        window.start + i: sample for window in passed for i, sample in enumerate(window.samples)
    }
    assert by_index == placement.gate([(signal.start, signal.samples)], ranges)
    assert all(len(window.samples) for window in passed)
    assert sum(len(window.samples) for window in passed) == len(by_index)


@settings(max_examples=10)
@given(st.data(), signals())
def test_ranges_without_a_flag_are_kept(
    everywhere: Callable[..., Any], data: st.DataObject, signal: CutSignal
) -> None:
    ranges = data.draw(ranges_in_order(signal.start, len(signal.samples)))
    kept = [(True, start, stop) for _, start, stop in ranges]
    bare = everywhere(Gate(), list_source([r[1:] for r in ranges], (int, int)), signal)
    assert bare == everywhere(Gate(), list_source(kept, CONTROL), signal)


def test_a_gate_that_is_told_to_drop_forgets() -> None:
    """The silence filter over a long silence: memory does not grow with it."""
    peaks = []
    for repeat in (20, 400):
        q = xs.Query()
        src = q.source(xs.io.array(np.zeros(4096, np.float32), window=512, repeat=repeat))
        louder = src.map(lambda seg: xs.SigSeg(np.asarray(seg) + 0.0, seg.start, seg.timebase))
        louder.gate(louder.silence(0.1)).count()
        peaks.append(q.run().memory.peak_bytes)
    assert peaks[1] <= peaks[0] * 1.5


def test_ranges_out_of_order_are_an_error(fails_everywhere: Callable[..., str]) -> None:
    signal = CutSignal(np.zeros(10, np.float32))
    message = fails_everywhere(Gate(), [(5, 6), (2, 3)], signal)
    assert "gate, port 'control'" in message
    assert "a range starts at 2, before the last one at 5" in message


def test_a_control_stream_must_carry_ranges() -> None:
    with pytest.raises(xs.SchemaError, match=r"gate, port 'control': needs ranges \(keep, start"):
        run_operator(Gate(), [0.5], CutSignal(np.zeros(3)))
    with pytest.raises(xs.SchemaError, match="sync, port 'control'"):
        run_operator(Sync(), [(1, 2)], CutSignal(np.zeros(3)))


# -- sync --------------------------------------------------------------------------------------


@st.composite
def requests_that_can_be_served(draw: st.DrawFn, first: int, stop: int) -> list[Any]:
    requests, forgotten = [], first
    for _ in range(draw(st.integers(0, 8))):
        if forgotten > stop:
            break
        low = draw(st.integers(forgotten, stop))
        high = draw(st.integers(low, stop + 5))
        keep = draw(st.booleans())
        requests.append((keep, low, high))
        if not keep:
            forgotten = max(forgotten, high)
    return requests


@settings(max_examples=30)
@given(st.data(), signals(start=0), signals((np.int16,), start=0))
def test_sync_serves_ranges_of_all_streams_in_order(
    everywhere: Callable[..., Any], data: st.DataObject, a: CutSignal, b: CutSignal
) -> None:
    shorter = min(len(a.samples), len(b.samples))
    requests = data.draw(requests_that_can_be_served(0, shorter))
    if not shorter:
        requests = []
    served = everywhere(Sync(), list_source(requests, CONTROL), a, b)
    expected = placement.sync(requests, [(0, a.samples), (0, b.samples)])
    assert [[(p.start, p.samples.tobytes()) for p in row] for row in served] == [
        [(start, samples.tobytes()) for start, samples in row] for row in expected
    ]


def test_a_discarded_start_is_an_error_that_names_it(fails_everywhere: Callable[..., str]) -> None:
    signal = CutSignal(np.zeros(50, np.float32), cuts=(20, 40))
    message = fails_everywhere(Sync(), [(False, 0, 30), (True, 25, 35)], signal)
    assert "start 25 of [25, 35) has been discarded: nothing before 30 is kept" in message


def test_a_start_before_the_stream_is_an_error(fails_everywhere: Callable[..., str]) -> None:
    signal = CutSignal(np.zeros(50, np.float32), start=10)
    message = fails_everywhere(Sync(), [(True, 5, 20)], signal)
    assert "start 5 of [5, 20) lies before the first sample of stream 0, 10" in message


def test_a_backward_range_is_an_error(fails_everywhere: Callable[..., str]) -> None:
    message = fails_everywhere(Sync(), [(True, 5, 4)], CutSignal(np.zeros(9)))
    assert "a range stops at 4, before its start at 5" in message


def test_indices_of_no_timebase_need_streams_of_one() -> None:
    slow, fast = xs.Timebase(rate_hz=10.0), xs.Timebase(rate_hz=20.0)
    with pytest.raises(xs.SchemaError, match="sync, port 'in2': its samples come at 20 Hz"):
        run_operator(
            Sync(),
            [(True, 0, 1)],
            CutSignal(np.zeros(3), timebase=slow),
            CutSignal(np.zeros(3), timebase=fast),
        )


@pytest.mark.parametrize("lag", [0, 450])
def test_discarding_bounds_the_memory_of_sync(lag: int) -> None:
    """Also where what is discarded has been buffered for a while."""
    for memory in xs.MANAGER_NAMES:
        peaks = []
        for seconds in (20, 200):
            q = xs.Query()
            src = q.source(xs.io.array(np.zeros(1000, np.float32), window=100, repeat=seconds))
            live = src.map(lambda seg: xs.SigSeg(np.asarray(seg) + 1, seg.start, seg.timebase))
            later = live.silence(1e9).map(
                lambda keep, start, stop: (keep, start - lag, stop - lag), out=CONTROL
            )
            later.sync(live).count()
            peaks.append(q.run(memory=memory).memory.peak_bytes)
        assert peaks[1] <= peaks[0] * 1.5, (memory, peaks)


# -- deinterleave ------------------------------------------------------------------------------


@settings(max_examples=25)
@given(signals((np.float32, np.int16, np.int8, np.complex128, np.dtype("i4,f8"))),
       st.integers(1, 7))  # fmt: skip
def test_deinterleave_gives_every_channel_its_samples(
    everywhere: Callable[..., Any], signal: CutSignal, channels: int
) -> None:
    outputs = everywhere(Deinterleave(channels), signal)
    if channels == 1:
        outputs = (outputs,)
    expected = placement.deinterleave(signal.samples, signal.start, channels)
    for channel, (windows, samples) in enumerate(zip(outputs, expected, strict=True)):
        assert b"".join(w.samples.tobytes() for w in windows) == samples.tobytes()
        for before, after in pairwise(windows):
            assert after.start == before.start + len(before.samples)
        if windows:
            first = windows[0].start * channels + channel
            assert signal.start <= first < signal.start + channels


def test_deinterleave_divides_the_rate() -> None:
    q = xs.Query()
    left, right = q.source(xs.io.array(np.zeros(8), rate_hz=96_000.0)).deinterleave(2)
    assert left.schema.only_segment.timebase == xs.Timebase(rate_hz=48_000.0)  # type: ignore[union-attr]
    assert right.schema == left.schema
    with pytest.raises(xs.GraphError, match="deinterleave: channels is at least 1, not 0"):
        Deinterleave(0)
