"""Every number of a user's is used or refused in a sentence, however large, small or strange."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import xstream as xs
from xstream.ops.rewindow import Rewindow

END = 2**63
NEAR = st.integers(-3, 3)
#: Around every power of two that matters to 64 bits, and a few that matter to a query.
WHOLE = st.one_of(
    st.builds(
        lambda power, sign, by: sign * 2**power + by,
        st.sampled_from([0, 3, 7, 15, 31, 32, 53, 59, 60, 61, 62, 63, 64, 200]),
        st.sampled_from([1, -1]),
        NEAR,
    ),
    st.integers(),
)
FLOATS = st.one_of(
    st.floats(), WHOLE, st.sampled_from([5e-324, 1e-300, 1e300, float("inf"), float("nan"), -0.0])
)
QUICKLY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)


def run_or_refuse(declare: Any, **options: Any) -> Any:
    """Results, or None for what was refused by one of our errors; anything else fails the test."""
    try:
        sink = declare()
        return sink.query.run(**options)[sink]
    except xs.XStreamError as refused:
        sentence = str(refused)
    assert "\n" not in sentence
    assert len(sentence) < 600
    return None


def signal(start: int = 0, window: int = 8, **options: Any) -> Any:
    samples = np.arange(32.0)
    return xs.Query().source(xs.io.array(samples, start=start, window=window, **options))


@QUICKLY
@given(WHOLE, WHOLE, st.booleans(), st.sampled_from([0, 2**62 - 32, -(2**62)]))
@example(30, 2**63 - 1, False, 0)
@example(8, 2**60, True, 2**62 - 32)
@example(2**60, 2**60, True, 2**62 - 32)
def test_rewindow(width: int, gap: int, flush: bool, start: int) -> None:
    windows = run_or_refuse(lambda: signal(start).rewindow(width, gap, flush).collect())
    if windows:
        assert windows[0].start == start
        assert all(window.width == width or flush for window in windows)


@QUICKLY
@given(WHOLE, WHOLE, st.one_of(st.none(), WHOLE), st.booleans())
@example(2**60, 2**62 - 32, None, True)
@example(8, 2**62 - 40, 2, False)
def test_sources(window: int, start: int, repeat: int | None, partial: bool) -> None:
    if repeat is None or repeat > 1000:  # would play on for long: declaring it is what is tried
        try:
            xs.io.array(np.arange(32.0), window=window, start=start, repeat=repeat, partial=partial)
        except xs.XStreamError:
            return
        return
    counted = run_or_refuse(lambda: signal(start, window, repeat=repeat, partial=partial).count())
    if counted is not None:
        assert counted.samples <= 32 * repeat


@pytest.mark.parametrize("repeat", [2, None])
def test_a_stream_that_reaches_the_last_index_ends_with_a_sentence(repeat: int | None) -> None:
    q = xs.Query()
    src = q.source(xs.io.array(np.zeros(8), window=4, start=2**62 - 12, repeat=repeat))
    src.count()
    with pytest.raises(xs.OperatorError, match="outside the indices of a signal"):
        q.run()


@QUICKLY
@given(FLOATS, FLOATS, FLOATS)
@example(1e300, 1.0, 0.0)
@example(5e-324, 5e-324, 1e300)
def test_rates(offered_hz: Any, rate_hz: Any, start_time: Any) -> None:
    if isinstance(offered_hz, float | int) and 0 < offered_hz < 1e4:
        offered_hz = None  # it would take its time
    run_or_refuse(
        lambda: signal(offered_hz=offered_hz, rate_hz=rate_hz, start_time=start_time).count()
    )


def test_a_very_low_rate_is_not_taken_for_none() -> None:
    q, stop = xs.Query(), threading.Event()
    out = q.source(xs.io.array(np.zeros(8), window=4, offered_hz=5e-324)).count()
    threading.Timer(0.2, stop.set).start()
    assert q.run(stop=stop)[out] == 0


@QUICKLY
@given(
    st.one_of(st.none(), WHOLE, st.floats()),
    st.one_of(st.none(), FLOATS),
    st.sampled_from(["fifo", "fifo-slice", "df"]),
)
@example(2**63 - 1, 1e300, "fifo-slice")
@example(64, 5e-324, "fifo-slice")
def test_run_options(tuple_burst: Any, slice_us: Any, scheduler: str) -> None:
    run_or_refuse(
        lambda: signal().count(), tuple_burst=tuple_burst, slice_us=slice_us, scheduler=scheduler
    )


#: The methods that take one number, with the name of it; compiled once each, then cheap.
ONE_NUMBER: dict[str, Any] = {
    "hanning": WHOLE.filter(lambda n: n < 2**16 or n > 2**27),
    "fft": WHOLE.filter(lambda n: n < 10 or n > 2**27),
    "ifft": WHOLE.filter(lambda n: n < 10 or n > 2**27),
    "haar": WHOLE,
    "decimate": WHOLE.filter(lambda n: n < 100 or n > 2**20),
    "deinterleave": WHOLE.filter(lambda n: n < 10 or n > 4096),
    "std_above": FLOATS,
    "mean_below": FLOATS,
    "silence": FLOATS,
    "threshold": FLOATS,
}


@pytest.mark.parametrize("method", ONE_NUMBER)
@settings(parent=QUICKLY, max_examples=15)
@given(data=st.data())
def test_one_number(method: str, data: st.DataObject) -> None:
    number = data.draw(ONE_NUMBER[method])

    def declare() -> Any:
        src = signal().fft(8) if method == "ifft" else signal()
        stream = getattr(src, method)(number)
        if isinstance(stream, tuple):
            for other in stream[1:]:
                other.count()
            stream = stream[0]
        return stream.count()

    run_or_refuse(declare)


@settings(parent=QUICKLY, max_examples=40)
@given(WHOLE, WHOLE, WHOLE, st.sampled_from([0, 2**62 - 32, -(2**62)]))
@example(2**60, 2**60, 2**60, 0)
@example(1, 2, 1, 2**62 - 32)
def test_cfar(padding: int, step: int, longest: int, start: int) -> None:
    ranges = run_or_refuse(
        lambda: signal(start).cfar(
            1.0, startup=2, refractory=1, padding=padding, step=step, longest=longest
        ).collect()
    )  # fmt: skip
    assert all(first <= stop for _, first, stop in ranges or [])


@settings(parent=QUICKLY, max_examples=40)
@given(st.lists(st.tuples(st.booleans(), WHOLE, WHOLE), max_size=4))
@example([(True, -END, END - 1)])
@example([(True, END - 1, -END)])
@example([(False, -END, END - 1), (True, END - 1, END - 1)])
@example([(True, 31, END - 1), (True, -END, -END)])
def test_control_ranges(ranges: list[tuple[bool, int, int]]) -> None:
    for gate in (True, False):

        def declare(gate: bool = gate) -> Any:
            src = signal()
            control = src.query.source(xs.io.iterable(ranges, out=(bool, int, int)))
            together = src.gate(control) if gate else control.sync(src, flush=True)
            return together.collect()

        for segment in run_or_refuse(declare) or []:
            assert 0 <= segment.start <= segment.stop <= 32


@xs.kernel(out=xs.Out(np.float64, start="given"))
def placed(window, where, out):
    out.emit_at(where, window)


@xs.kernel(out=xs.Out(np.float64, start="given"))
def placed_empty(window, where, out):
    out.emit_at(where, window[:0])


@settings(parent=QUICKLY, max_examples=40)
@given(WHOLE)
@example(2**63 - 1)
@example(-(2**63))
@example(2**62 - 8)
@example(2**62 - 7)
def test_emit_at(where: int) -> None:
    for kernel, width in ((placed, 8), (placed_empty, 0)):
        found = run_or_refuse(lambda kernel=kernel: signal().iterate(kernel, where).collect())
        assert (found is not None) == (-(2**62) <= where <= 2**62 - width)
        assert all(segment.start == where for segment in found or [])


@given(st.one_of(st.none(), WHOLE, st.floats()), st.one_of(st.fractions(), FLOATS))
@example(-1, 1)
@example(None, 2**63)
@example(None, 2**20)
def test_out_is_what_fits_or_refused(width: Any, rate: Any) -> None:
    try:
        out = xs.Out("float32", width=width, rate=rate)
    except xs.SchemaError:
        return
    assert out.width is None or 0 <= out.width <= 2**60
    assert 0 < out.rate <= 2**20


@xs.kernel(out=xs.Out(np.float64, rate=2**20, start="scaled"))
def stretched(window, out):
    out[:] = 0.0


def test_a_scaled_start_beyond_the_last_index_is_refused() -> None:
    q = xs.Query()
    src = q.source(xs.io.array(np.zeros(1), start=2**61))
    src.map(stretched).count()
    with pytest.raises(xs.OperatorError, match="outside the indices of a signal"):
        q.run()


@given(FLOATS, WHOLE, FLOATS)
@example(5e-324, 2**62, 1e300)
def test_timebases(rate_hz: Any, index: int, time: Any) -> None:
    try:
        timebase = xs.Timebase(rate_hz)
        timebase.time_of(index)
        timebase.index_at(time)
    except xs.TimebaseError:
        return


@given(st.one_of(WHOLE, st.floats()))
def test_memory_limits(limit: Any) -> None:
    try:
        manager = xs.memory_manager(limit_bytes=limit)
    except xs.ManagerError:
        assert not isinstance(limit, int) or limit <= 0
        return
    assert manager.stats().live_bytes == 0


@given(st.sampled_from([np.int8, np.uint8, np.int16]), st.integers(1, 100), st.integers(-99, 100))
def test_small_numpy_integers_are_numbers_like_any(kind: Any, width: int, gap: int) -> None:
    """In their own arithmetic -5 would be 251, and 100 + 100 below zero."""
    if gap <= -width or (kind is np.uint8 and gap < 0):
        return
    assert Rewindow(kind(width), kind(gap)) == Rewindow(width, gap)


def times(*at: int) -> Any:
    return xs.Query().source(xs.io.iterable([(t, 1.0) for t in at], out={"time": int, "x": float}))


@QUICKLY
@given(FLOATS, FLOATS, WHOLE, st.sampled_from(["time", None]), st.sampled_from(["close", "change"]))
@example(2**60, 2**60, 2**60, "time", "close")
@example(1, 2**62, 0, None, "close")
@example(float("inf"), 1.0, 0, "time", "close")
@example(float("nan"), 1.0, 0, None, "close")
def test_aggregate(window: Any, step: Any, lateness: Any, time: str | None, report: str) -> None:
    def declare() -> Any:
        given = {"window": window, "step": step, "lateness": lateness}
        rows = times(0, 3, 9).aggregate({"n": "count"}, time=time, report=report, **given)
        return rows.count()

    run_or_refuse(declare)


@QUICKLY
@given(WHOLE, st.sampled_from(["time", None]), st.booleans())
@example(2**63 - 1, "time", True)
def test_delay(amount: int, time: str | None, stamp: bool) -> None:
    run_or_refuse(lambda: times(0, 3, 2**62).delay(amount, time=time, stamp=stamp).count())


@QUICKLY
@given(WHOLE, WHOLE, st.sampled_from(["oldest", "newest", "random"]))
def test_shed(limit: int, seed: int, drop: str) -> None:
    left = run_or_refuse(
        lambda: times(0, 3, 9).shed(limit, drop, seed=seed).count(), tuple_burst=None
    )
    assert left is None or left <= 3


@QUICKLY
@given(WHOLE.filter(lambda n: n < 10 or n > 4096))
def test_partition(replicas: int) -> None:
    run_or_refuse(
        lambda: times(0, 3, 9).partition("time", replicas).each(lambda p: p).merge().count()
    )


def test_every_number_of_a_stream_method_is_tried_here() -> None:
    """A new method with a number in its signature belongs into this file."""
    tried = {*ONE_NUMBER, "rewindow", "cfar", "aggregate", "delay", "shed", "partition"}
    for name, method in inspect.getmembers(xs.Stream, inspect.isfunction):
        if name.startswith("_") or name in tried:
            continue
        annotations = [p.annotation for p in inspect.signature(method).parameters.values()]
        assert not {"int", "float"} & {
            part for one in annotations if isinstance(one, str) for part in one.split(" | ")
        }, name
