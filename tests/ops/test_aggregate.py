"""aggregate: groups and windows against every window computed from its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.reference import aggregates
from xstream.ops.aggregate import Aggregate, values_of
from xstream.testing import CutSignal, list_source, run_operator, signals

FIELDS = {"time": int, "a": int, "b": int, "x": float, "k": int}
VALUES = {
    "n": ("count", None), "s": ("sum", "x"), "m": ("mean", "x"), "sd": ("std", "x"),
    "lo": ("min", "x"), "hi": ("max", "k"), "f": ("first", "x"), "l": ("last", "k"),
    "d": ("distinct", "k"), "dx": ("distinct", "x"), "si": ("sum", "k"), "mi": ("mean", "k"),
}  # fmt: skip


@xs.kernel
def spread(values):  # type: ignore[no-untyped-def]
    return values.max() - values.min()


@xs.kernel
def weighted(values):  # type: ignore[no-untyped-def]
    """Depends on the order."""
    total = 0
    for i in range(len(values)):
        total += (i + 1) * values[i]
    return total


def asked(values: dict[str, Any]) -> Any:
    return values_of({n: what if what[1] else what[0] for n, what in values.items()})


@st.composite
def rows_in_time(draw: st.DrawFn, slack: int = 0, least: int = -20) -> list[tuple[Any, ...]]:
    """Rows whose times go on, some of them back by up to `slack`; sums of them are exact."""
    time, rows = draw(st.integers(least, 20)), []
    for _ in range(draw(st.integers(0, 25))):
        time += draw(st.sampled_from([0, 0, 1, 1, 2, 7, 40]))
        at = time - (draw(st.integers(0, slack)) if slack else 0)
        x = draw(st.integers(-8, 8)) / 4
        rows.append(
            (at, draw(st.integers(0, 2)), draw(st.integers(0, 1)), x, draw(st.integers(-3, 3)))
        )
    return rows


def as_dicts(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(FIELDS, row, strict=True)) for row in rows]


def assert_same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    """Exactly, apart from deviations."""
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        assert row == pytest.approx(wanted, rel=1e-12, abs=1e-12), (row, wanted)


keys = st.sampled_from([(), ("a",), ("a", "b")])
sizes = st.tuples(st.integers(1, 12), st.integers(1, 12))


@settings(max_examples=25)
@given(rows_in_time(), keys, sizes)
def test_windows_of_time_have_the_values_of_their_rows(
    everywhere: Callable[..., Any], rows: list[Any], by: Any, size: tuple[int, int]
) -> None:
    operator = Aggregate(asked(VALUES), by, *size, time="time")
    found = everywhere(operator, list_source(rows, FIELDS))
    assert_same(found, aggregates.on_close(as_dicts(rows), by, VALUES, *size)[0])


@settings(max_examples=20)
@given(rows_in_time(slack=15), keys, sizes, st.integers(0, 12))
def test_late_rows_are_dropped_and_counted(
    rows: list[Any], by: Any, size: tuple[int, int], lateness: int
) -> None:
    options = {"time": "time", "late": "drop", "lateness": lateness}
    expected, dropped = aggregates.on_close(
        as_dicts(rows), by, VALUES, *size, lateness=lateness, drop=True
    )
    for scheduler in xs.SCHEDULER_NAMES:
        q = xs.Query()
        stream = q.source(list_source(rows, FIELDS)).then(
            Aggregate(asked(VALUES), by, *size, **options)
        )
        out = stream.collect()
        run = q.run(scheduler)
        assert_same(run[out], expected)
        assert run.stats_of(stream).dropped == dropped


@settings(max_examples=20)
@given(rows_in_time(), keys, sizes)
def test_changes_are_reported_as_rows_enter_and_leave(
    everywhere: Callable[..., Any], rows: list[Any], by: Any, size: tuple[int, int]
) -> None:
    window, step = max(size), min(size)
    operator = Aggregate(asked(VALUES), by, window, step, "time", "change")
    found = everywhere(operator, list_source(rows, FIELDS))
    counted = [row for row in found if row[2 + len(by)]]  # without groups, empty ones come as well
    assert_same(counted, list(aggregates.on_change(as_dicts(rows), by, VALUES, window, step)))


@settings(max_examples=25)
@given(rows_in_time(), keys, sizes)
def test_windows_of_rows_are_each_groups_own(
    everywhere: Callable[..., Any], rows: list[Any], by: Any, size: tuple[int, int]
) -> None:
    found = everywhere(Aggregate(asked(VALUES), by, *size), list_source(rows, FIELDS))
    assert_same(found, aggregates.of_rows(as_dicts(rows), by, VALUES, *size))


OWN = {"spread": (spread, "x"), "order": (weighted, "k"), "n": ("count", None)}
OWN_REFERENCE = {
    "spread": (lambda x: max(x) - min(x), "x"),
    "order": (lambda k: sum((i + 1) * v for i, v in enumerate(k)), "k"),
    "n": ("count", None),
}


@settings(max_examples=12)
@given(rows_in_time(), keys, sizes)
def test_kernels_of_the_user_get_the_values_in_order(
    everywhere: Callable[..., Any], rows: list[Any], by: Any, size: tuple[int, int]
) -> None:
    source, dicts = list_source(rows, FIELDS), as_dicts(rows)
    found = everywhere(Aggregate(asked(OWN), by, *size, time="time"), source)
    assert found == aggregates.on_close(dicts, by, OWN_REFERENCE, *size)[0]
    found = everywhere(Aggregate(asked(OWN), by, *size), source)
    assert found == aggregates.of_rows(dicts, by, OWN_REFERENCE, *size)


@settings(max_examples=15)
@given(rows_in_time(), keys, st.lists(st.integers(0, 25), max_size=3))
def test_columns_are_rows(
    everywhere: Callable[..., Any], rows: list[Any], by: Any, cuts: list[int]
) -> None:
    """Segments of one tuple are columns; it makes no difference how rows are cut into tuples."""
    operator = Aggregate(asked(VALUES | OWN), by, 10, 5, "time")
    expected = run_operator(operator, list_source(rows, FIELDS))
    types = [np.int64, np.int8, np.bool_, np.float32, np.int16]
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    tuples = [
        tuple(
            xs.SigSeg(np.array([row[i] for row in rows[low:high]], dtype), low)
            for i, dtype in enumerate(types)
        )
        for low, high in pairwise(bounds)
    ]
    schema = {name: xs.Segment(dtype) for name, dtype in zip(FIELDS, types, strict=True)}
    found = everywhere(operator, list_source(tuples, schema))
    assert_same(found, [tuple(map(float, row)) for row in expected])


@settings(max_examples=20)
@given(signals((np.float32, np.int16)), sizes)
def test_windows_of_samples_are_ranges_of_the_signal(
    everywhere: Callable[..., Any], signal: CutSignal, size: tuple[int, int]
) -> None:
    window, step = size
    operator = Aggregate(values_of({"n": "count", "s": "sum", "d": "distinct"}), (), window, step)
    x = signal.samples
    assert everywhere(operator, signal) == [
        (signal.start + at, signal.start + at + window, window, part.sum(), len(set(part)))
        for at in range(0, len(x) - window + 1, step)
        for part in [x[at : at + window].astype(int)]
    ]


@settings(max_examples=20)
@given(
    signals((np.float32,), max_width=80),
    st.sampled_from([Fraction(8), Fraction(1000, 3), Fraction(44_100)]),
    st.sampled_from([(1, 1), (0.5, 0.25), (Fraction(1, 3), Fraction(1, 3)), (0.1, 0.3)]),
)
def test_windows_of_seconds_are_placed_by_the_timebase(
    everywhere: Callable[..., Any], signal: CutSignal, rate: Fraction, size: tuple[Any, Any]
) -> None:
    tb = xs.Timebase(rate_hz=float(rate), start_time=0.2)
    timed = CutSignal(signal.samples, signal.start, signal.cuts, signal.joints, tb)
    operator = Aggregate(values_of({"n": "count", "s": "sum"}), (), *size, time="timebase")
    window, step = (Fraction(part).limit_denominator(1000) for part in size)
    times = [Fraction(1, 5) + (signal.start + i) / rate for i in range(len(signal.samples))]
    expected = []
    if times:
        last = math.floor((times[-1] + window) / step)
        for number in range(math.floor(times[0] / step) + 1, last + 1):
            end = number * step
            inside = [i for i, t in enumerate(times) if end - window <= t < end]
            if inside:
                bounds = (math.ceil((t - Fraction(1, 5)) * rate) for t in (end - window, end))
                total = signal.samples[inside].astype(float).sum()
                expected.append((*bounds, len(inside), total))
    assert everywhere(operator, timed) == expected


def test_the_whole_stream_is_one_window(everywhere: Callable[..., Any]) -> None:
    rows = [(7, 1.0), (8, 5.0), (7, 2.0)]
    values = values_of({"n": "count", "s": ("sum", "x")})
    source = list_source(rows, {"a": int, "x": float})
    assert everywhere(Aggregate(values, ("a",)), source) == [(7, 2, 3.0), (8, 1, 5.0)]
    assert everywhere(Aggregate(values), source) == [(3, 8.0)]
    assert everywhere(Aggregate(values, report="change"), source) == [(1, 1.0), (2, 6.0), (3, 8.0)]
    nothing = list_source([], {"a": int, "x": float})
    assert everywhere(Aggregate(values), nothing) == []
    assert everywhere(Aggregate(values, empty=True), nothing) == [(0, 0.0)]


def test_windows_without_rows_are_reported_where_asked(everywhere: Callable[..., Any]) -> None:
    values = values_of({"n": "count", "m": ("mean", "x"), "lo": ("min", "time")})
    source = list_source([(1, 2.0), (9, 4.0)], {"time": int, "x": float})
    rows = everywhere(Aggregate(values, (), 3, 3, "time", empty=True), source)
    assert [row[:3] for row in rows] == [(0, 3, 1), (3, 6, 0), (6, 9, 0), (9, 12, 1)]
    assert math.isnan(rows[1][3])
    assert rows[1][4] == 0
    changes = everywhere(Aggregate(values, (), 3, 3, "time", "change"), source)
    assert [row[:3] for row in changes] == [(0, 3, 1), (3, 6, 0), (9, 12, 1)]


def test_sums_survive_large_levels_and_special_values() -> None:
    rows = [(0, 1e16), (0, 1.0), (0, -1e16), (1, 1e4), (1, 1e4 + 2), (2, math.inf), (2, 1.0)]
    rows += [(3, math.nan), (3, 5.0), (4, -0.0), (4, 0.0)]
    values = values_of({n: (n, "x") for n in ("sum", "mean", "std", "min", "max", "distinct")})
    out = run_operator(Aggregate(values, ("k",)), list_source(rows, {"k": int, "x": float}))
    assert out[0][1] == 1.0
    assert out[1][1:4] == (20_002.0, 10_001.0, 1.0)
    assert out[2][1:3] == (math.inf, math.inf)
    assert all(math.isnan(x) for x in out[3][1:6])
    assert out[4][6] == 1


def test_memory_is_that_of_live_windows_only() -> None:
    """A long stream of ever new groups leaves nothing behind but its current windows."""
    rows = [(i, i) for i in range(60_000)]
    values = values_of({"n": "count", "d": ("distinct", "k")})
    source = list_source(rows, {"time": int, "k": int})
    out = run_operator(Aggregate(values, ("k",), 100, 50, "time"), source)
    assert len(out) == 2 * 60_000
    assert {row[3:] for row in out} == {(1, 1)}


def test_many_groups_and_distinct_values(everywhere: Callable[..., Any]) -> None:
    rng = np.random.default_rng(5)
    group, x = rng.integers(0, 5_000, 20_000), rng.integers(0, 300, 20_000)
    rows = (xs.SigSeg(group), xs.SigSeg(x))
    values = values_of({"n": "count", "d": ("distinct", "f1")})
    found = run_operator(Aggregate(values, ("f0",)), [rows])
    expected: dict[int, list[int]] = {}
    for g, value in zip(group.tolist(), x.tolist(), strict=True):
        expected.setdefault(g, []).append(value)
    assert found == [(g, len(v), len(set(v))) for g, v in expected.items()]


def test_windows_of_a_signal_are_ranges_of_it_for_other_signals() -> None:
    """The loudest second of one signal, cut out of another at its own rate."""
    q = xs.Query()
    slow = q.source(xs.io.array(np.float32([1, 1, 9, 9, 1, 1]), rate_hz=2.0, window=4))
    fast = q.source(xs.io.array(np.arange(9), rate_hz=3.0, window=2))
    levels = slow.aggregate({"level": "mean"}, window=1, time="timebase")
    assert str(levels.schema.types[0]) == "int64 at 2 Hz"
    loud = levels.filter(lambda start, stop, level: level > 5.0).select("start", "stop")
    out = fast.gate(loud).collect()
    assert [x for seg in q.run()[out] for x in np.asarray(seg).tolist()] == [3, 4, 5]


def test_results_are_those_of_one_thread() -> None:
    rows = [(i // 4, i * 7 % 13, i % 5, (i % 9) / 4, i % 3) for i in range(8_000)]
    results = []
    for threads in (1, 2):
        q = xs.Query()
        src = q.source(list_source(rows, FIELDS)).passed()
        by_time = src.then(Aggregate(asked(VALUES | OWN), ("a",), 60, 20, "time")).collect()
        by_rows = src.then(Aggregate(asked(VALUES | OWN), ("a", "b"), 6, 2)).collect()
        run = q.run(threads=threads)
        results.append((run[by_time], run[by_rows]))
    assert results[0] == results[1]
    assert min(map(len, results[0])) > 1000


# -- wrong use -----------------------------------------------------------------------------------


def test_a_late_row_is_an_error_that_says_how_late(fails_everywhere: Callable[..., str]) -> None:
    source = list_source([(1, 0), (25, 0), (9, 0)], {"time": int, "k": int})
    values = values_of({"n": "count"})
    message = fails_everywhere(Aggregate(values, (), 10, time="time"), source)
    assert "a row at 9 came after the windows up to 20 were reported" in message


def test_sums_that_do_not_fit_are_an_error(fails_everywhere: Callable[..., str]) -> None:
    operator = Aggregate(values_of({"s": "sum"}), (), 2)
    message = fails_everywhere(operator, [2**62, 2**62])
    assert "aggregate, port 'in'" in message
    assert "a sum of whole numbers does not fit into 64 bits" in message


def test_samples_in_windows_of_rows_have_no_gaps(fails_everywhere: Callable[..., str]) -> None:
    parts = [xs.SigSeg(np.zeros(3), 0), xs.SigSeg(np.zeros(3), 4)]
    operator = Aggregate(values_of({"n": "count"}), (), 2)
    assert "a segment starts at 4, and the next sample is 3" in fails_everywhere(operator, parts)
    tb = xs.Timebase(rate_hz=1.0)
    back = [xs.SigSeg(np.zeros(3), 0, tb), xs.SigSeg(np.zeros(3), 2, tb)]
    operator = Aggregate(values_of({"n": "count"}), (), 2, time="timebase")
    assert "a segment starts at 2, before the end of the last one at 3" in fails_everywhere(
        operator, back
    )


def test_columns_of_one_tuple_are_as_long(fails_everywhere: Callable[..., str]) -> None:
    rows = [(xs.SigSeg(np.zeros(3, np.int64)), xs.SigSeg(np.zeros(2)))]
    operator = Aggregate(values_of({"s": ("sum", "f1")}), ("f0",))
    assert "segments of one tuple have 3 and 2 samples" in fails_everywhere(operator, rows)


@xs.kernel
def fails(values):  # type: ignore[no-untyped-def]
    if len(values) > 1:
        raise ValueError("too many")
    return 0


def test_an_error_in_a_kernel_is_named(fails_everywhere: Callable[..., str]) -> None:
    for window in (None, 2):
        message = fails_everywhere(Aggregate(values_of({"s": fails}), (), window), [1, 2])
        assert "aggregate" in message
        assert "ValueError: too many" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"report": "never"}, "report must be 'close' or 'change'"),
        ({"late": "keep"}, "late must be 'error' or 'drop'"),
        ({"step": 4}, "step and time require a window"),
        ({"window": 0}, "window is a positive whole number, not 0"),
        ({"window": 2.5}, "window is a positive whole number, not 2.5"),
        ({"window": 5, "step": -1}, "step is a positive whole number, not -1"),
        ({"window": 5, "lateness": 3}, "lateness is a whole number in units of the time field"),
        ({"window": 5, "empty": True}, "empty windows are reported where there are no groups"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(xs.GraphError, match=f"aggregate: {message}"):
        Aggregate(values_of({"n": "count"}), **options)


def test_fields_that_do_not_fit_are_refused() -> None:
    n = values_of({"n": "count"})
    cases: list[tuple[Aggregate, Any, str]] = [
        (Aggregate(values_of({"m": "mean"})), [(1, 2)], "mean is of one of the fields f0, f1"),
        (Aggregate(n, ("z",)), [(1, 2)], "there is no field 'z' among f0, f1"),
        (Aggregate(n, ("f0",)), [(0.5, 2)], "groups must be by integers, not by float64"),
        (Aggregate(n, (), 4, time="f0"), [(0.5, 2)], "time is a field of whole numbers"),
        (Aggregate(n, (), 4, time="timebase"), [(1, 2)], "windows of seconds need a stream"),
        (Aggregate(values_of({"m": "sum"})), CutSignal(np.zeros(2, complex)), "rows have real"),
        (Aggregate(n, (), 2**40, 1), [(1, 2)], "keep too much for each group"),
    ]
    for operator, rows, message in cases:
        with pytest.raises((xs.SchemaError, xs.GraphError), match=message):
            run_operator(operator, rows)
    with pytest.raises(xs.GraphError, match="values must be a dictionary"):
        values_of({})
    with pytest.raises(xs.GraphError, match="value 'm' is one of count, sum"):
        values_of({"m": "median"})
    with pytest.raises(xs.KernelError, match="a value of a window is one number"):
        run_operator(Aggregate(values_of({"v": xs.kernel(lambda v: (v, 1))})), [1])
