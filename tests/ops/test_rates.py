"""gate, sync and zip of signals at different rates: what counts is the time of a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import rates
from xstream.ops.basic import Merge
from xstream.ops.gate import Gate
from xstream.ops.sync import Sync
from xstream.ops.zip import Zip
from xstream.testing import CutSignal, ListSource, list_source, run_operator, signals

#: What a user writes as 1000 / 3 is meant as that fraction.
RATES = [Fraction(44_100), Fraction(8_000), Fraction(1_000, 3), Fraction(48_000), Fraction(1)]
STARTS = [Fraction(0), Fraction(1, 10), Fraction(-3, 7), Fraction(2)]


def timebase(rate: Fraction, zero: Fraction) -> xs.Timebase:
    return xs.Timebase(rate_hz=float(rate), start_time=float(zero))


def control_of(ranges: list[Any], tb: xs.Timebase) -> ListSource:
    index = xs.Scalar("int64", tb)
    return list_source(ranges, {"keep": bool, "start": index, "stop": index})


@st.composite
def timed(draw: st.DrawFn, rate: Fraction | None = None) -> tuple[rates.Signal, CutSignal]:
    """A signal, as the reference and as the engine see it."""
    rate = rate or draw(st.sampled_from(RATES))
    zero = draw(st.sampled_from(STARTS))
    cut = draw(signals((np.float32,), max_width=60))
    cut = replace(cut, timebase=timebase(rate, zero))
    return rates.Signal(rate, zero, cut.start, cut.samples), cut


def nearby(control: rates.Signal, signal: rates.Signal) -> int:
    """The index of the control's timebase at about the time of the signal's first sample."""
    return int((signal.time_of(signal.start) - control.zero) * control.rate)


@settings(max_examples=30)
@given(st.data(), timed(), timed())
def test_gate_passes_the_samples_at_the_time_of_the_ranges(
    everywhere: Callable[..., Any], data: st.DataObject, of: Any, to: Any
) -> None:
    (control, clock), (signal, cut) = of, to
    middle = nearby(control, signal)
    span = int(len(signal.samples) / signal.rate * control.rate) + 3
    starts = sorted(data.draw(st.lists(st.integers(middle - 3, middle + span), max_size=6)))
    ranges = [(start, start + data.draw(st.integers(0, span))) for start in starts]
    asked = control_of([(True, *pair) for pair in ranges], clock.timebase)
    passed = everywhere(Gate(), asked, cut)
    indices = [seg.start + i for seg in passed for i in range(len(seg.samples))]
    assert indices == rates.gate(control, ranges, signal)
    for seg in passed:
        expected = rates.placed(signal, list(range(seg.start, seg.start + len(seg.samples))))
        assert seg.samples.tobytes() == expected.tobytes()


@settings(max_examples=30)
@given(st.data(), timed(), timed(), timed())
def test_sync_cuts_one_time_out_of_signals_at_their_own_rates(
    everywhere: Callable[..., Any], data: st.DataObject, of: Any, a: Any, b: Any
) -> None:
    control, clock = of
    streams = [a[0], b[0]]
    low = max(signal.time_of(signal.start) for signal in streams)
    first = -int(-((low - control.zero) * control.rate) // 1)
    lengths = st.integers(0, max(int(control.rate / 500), 3))
    marks = [first]
    for _ in range(data.draw(st.integers(0, 6))):
        marks.append(marks[-1] + data.draw(lengths))
    ranges = list(pairwise(marks)) if all(len(s.samples) for s in streams) else []
    asked = control_of([(True, *pair) for pair in ranges], clock.timebase)
    served = everywhere(Sync(), asked, a[1], b[1])
    expected = rates.sync(control, ranges, streams)
    assert len(served) == len(expected)
    for row, cuts in zip(served, expected, strict=True):
        for seg, signal, indices in zip(row, streams, cuts, strict=True):
            assert seg.samples.tobytes() == rates.placed(signal, indices).tobytes()
            assert seg.start == indices[0] if indices else len(seg.samples) == 0
            assert seg.timebase == timebase(signal.rate, signal.zero)


@settings(max_examples=30)
@given(timed(Fraction(8_000)), timed(Fraction(44_100)), timed(Fraction(1_000, 3)))
def test_zip_pairs_windows_with_what_other_rates_have_at_that_time(
    everywhere: Callable[..., Any], a: Any, b: Any, c: Any
) -> None:
    windows = [(seg.start, seg.stop) for seg in a[1].segments()]
    pairs = everywhere(Zip(), a[1], b[1], c[1])
    expected = rates.zipped(a[0], windows, [b[0], c[0]])
    found = [tuple(seg.samples.tobytes() for seg in row) for row in pairs]
    assert found == [
        tuple(
            rates.placed(signal, indices).tobytes()
            for signal, indices in zip((a[0], b[0], c[0]), row, strict=True)
        )
        for row in expected
    ]


def test_neighbouring_ranges_share_no_sample_after_billions() -> None:
    """Ranges of a third of a kilohertz out of 44,100 Hz, three billion samples into the signal."""
    at = 10**9 * 3 + 1
    control, fast = xs.Timebase(rate_hz=1000 / 3), xs.Timebase(rate_hz=44_100.0)
    first = at * 1323 // 10  # 44,100 / (1000 / 3) = 132.3
    signal = CutSignal(np.arange(2_000, dtype=np.int32), start=first, timebase=fast)
    ranges = [(True, at + 1 + i, at + 2 + i) for i in range(10)]
    parts = run_operator(Sync(), control_of(ranges, control), signal)
    bounds = [-(-(at + 1 + i) * 1323 // 10) for i in range(11)]
    assert [(part.start, part.stop) for part in parts] == list(pairwise(bounds))


def test_detectors_say_which_timebase_their_ranges_are_of() -> None:
    q = xs.Query()
    slow = q.source(xs.io.array(np.float32([0, 0, 5, 5, 0, 0, 0, 0]), rate_hz=4.0, window=3))
    fast = q.source(xs.io.array(np.arange(16, dtype=np.float32), rate_hz=8.0, window=5))
    found = slow.threshold(1.0)
    assert str(found.schema) == "(keep: bool, start: int64 at 4 Hz, stop: int64 at 4 Hz)"
    loud, both = fast.gate(found).collect(), found.sync(slow, fast).collect()
    events = slow.cfar(5.0, step=2)
    assert events.schema.types[1].timebase == xs.Timebase(rate_hz=8.0)  # type: ignore[union-attr]
    events.count()
    run = q.run()
    assert [np.asarray(seg).tolist() for seg in run[loud]] == [[4], [5, 6, 7]]
    assert [[seg.start, seg.width] for seg in run[both][0]] == [[2, 2], [4, 4]]


def test_discarding_ranges_bound_memory_at_every_rate() -> None:
    peaks = []
    for seconds in (20, 200):
        q = xs.Query()
        slow = q.source(xs.io.array(np.zeros(300, np.float32), 300.0, 100, seconds))
        fast = q.source(xs.io.array(np.zeros(1000, np.float32), 1000.0, 100, seconds))
        copied = fast.map(lambda seg: xs.SigSeg(np.asarray(seg) + 1, seg.start, seg.timebase))
        slow.silence(1e9).sync(slow, copied).count()
        slow.zip(copied).count()
        peaks.append(q.run().memory.peak_bytes)
    assert peaks[1] <= peaks[0] * 1.5


def test_flush_gives_what_all_rates_cover() -> None:
    slow, fast = xs.Timebase(rate_hz=1.0), xs.Timebase(rate_hz=3.0)
    asked = control_of([(True, 0, 100)], slow)
    a = CutSignal(np.arange(9.0), timebase=slow)
    b = CutSignal(np.arange(11.0), timebase=fast)
    ((left, right),) = run_operator(Sync(flush=True), asked, a, b)
    assert (left.width, right.width) == (3, 9)


def test_a_range_before_a_stream_is_an_error_at_any_rate(
    fails_everywhere: Callable[..., str],
) -> None:
    signal = CutSignal(np.zeros(50), start=10, timebase=xs.Timebase(rate_hz=10.0))
    asked = control_of([(True, 0, 1)], xs.Timebase(rate_hz=1.0))
    message = fails_everywhere(Sync(), asked, signal)
    assert "start 0 of [0, 1) lies before the first sample of stream 0, 10" in message


def test_indices_outside_a_signal_are_an_error(fails_everywhere: Callable[..., str]) -> None:
    signal = CutSignal(np.zeros(5), timebase=xs.Timebase(rate_hz=10.0))
    asked = control_of([(True, 0, 2**61)], xs.Timebase(rate_hz=1.0))
    assert "lies outside the indices of stream 0" in fails_everywhere(Sync(), asked, signal)
    assert "lies outside the indices of the signal" in fails_everywhere(Gate(), asked, signal)


def test_zip_windows_must_come_in_order(fails_everywhere: Callable[..., str]) -> None:
    tb, other = xs.Timebase(rate_hz=10.0), CutSignal(np.zeros(5), timebase=xs.Timebase(rate_hz=1.0))
    windows = [xs.SigSeg(np.zeros(2), start, tb) for start in (4, 2)]
    assert "a window starts at 2, before the last one at 4" in fails_everywhere(
        Zip(), windows, other
    )


def test_what_cannot_be_related_is_refused() -> None:
    one, odd = xs.Timebase(rate_hz=1.0), xs.Timebase(rate_hz=0.7234567890123456e-7)
    far = xs.Timebase(rate_hz=44_100.123456789, start_time=12345.678901234)
    with pytest.raises(xs.SchemaError, match=r"sync, port 'in': signals at .* more than 64 bits"):
        run_operator(Sync(), control_of([], odd), CutSignal(np.zeros(3), timebase=far))
    with pytest.raises(xs.SchemaError, match="sync, port 'in2': its samples come at index"):
        run_operator(
            Sync(),
            control_of([], one),
            CutSignal(np.zeros(3), timebase=one),
            CutSignal(np.zeros(3)),
        )
    mixed = list_source([], (xs.Scalar("int64", one), xs.Scalar("int64", odd)))
    with pytest.raises(xs.SchemaError, match="gate, port 'control': ranges start at indices at 1"):
        run_operator(Gate(), mixed, CutSignal(np.zeros(3), timebase=one))
    a, b = (list_source([], xs.Scalar("int64", base)) for base in (one, odd))
    with pytest.raises(xs.SchemaError, match="merge, port 'in1': indices at"):
        run_operator(Merge(), a, b)
    with pytest.raises(xs.SchemaError, match="the index of a sample is a whole number"):
        xs.Scalar("float64", one)


def test_ranges_of_any_signal_cut_signals_without_a_rate_by_index() -> None:
    asked = control_of([(True, 1, 3)], xs.Timebase(rate_hz=8.0))
    (part,) = run_operator(Gate(), asked, CutSignal(np.arange(5)))
    assert np.asarray(part).tolist() == [1, 2]


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**7, max_denominator=10**6))
def test_the_simplest_fraction_is_what_was_meant(rate: Fraction) -> None:
    if rate.numerator * rate.denominator < 2**50:
        assert xs.Timebase(rate_hz=float(rate)).exact_rate_hz == rate
        assert xs.Timebase(start_time=-float(rate)).exact_start_time == -rate


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_the_simplest_fraction_rounds_to_the_rate(rate: float) -> None:
    exact = xs.Timebase(rate_hz=rate).exact_rate_hz
    assert exact is not None
    assert float(exact) == rate
