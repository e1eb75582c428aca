"""What kernels can take, keep and give."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels
from xstream.kernels import apply as apply_module

RECORD = np.dtype([("level", "f4"), ("code", "i2")])


def run_over(samples: Any, declare: Any, window: int = 4, **options: Any) -> Any:
    q = xs.Query()
    out = declare(q.source(xs.io.array(samples, window=window, **options))).collect()
    return q.run()[out]


@xs.kernel
def reverse(window):
    return window[::-1].copy()


DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16", RECORD]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_that_numba_can_express(dtype: Any) -> None:
    samples = np.zeros(8, dtype)
    raw = np.arange(8) % 2 if dtype == "?" else np.arange(8)
    if dtype is RECORD:
        samples["level"], samples["code"] = raw, -raw
    else:
        samples[:] = raw
    found = run_over(samples, lambda src: src.map(reverse))
    assert [segment.dtype for segment in found] == [samples.dtype] * 2
    assert np.asarray(found[0]).tolist() == samples[:4][::-1].tolist()


def test_float16_is_refused_by_name() -> None:
    with pytest.raises(xs.KernelError, match="numba cannot express dtype float16: convert it"):
        run_over(np.zeros(4, np.float16), lambda src: src.map(reverse))


@xs.kernel(out=xs.Out(RECORD))
def emit_records(window, out):
    records = np.empty(len(window), out_dtype)
    for i in range(len(window)):
        records[i].level = window[i]
        records[i].code = i
    out.emit(records)


out_dtype = RECORD


def test_records_can_be_emitted() -> None:
    (found,) = run_over(np.arange(3.0), lambda src: src.iterate(emit_records))
    assert np.asarray(found).tolist() == [(0.0, 0), (1.0, 1), (2.0, 2)]


@xs.kernel
def everything(window):
    return window.max() > 2, len(window), window.mean(), window.astype(np.int16), window > 1


def test_several_outputs_of_every_kind() -> None:
    found = run_over(np.arange(6.0), lambda src: src.map(everything))
    first = found[0]
    assert first[:3] == (True, 4, 1.5)
    assert type(first[0]) is bool
    assert np.asarray(first[3]).tolist() == [0, 1, 2, 3]
    assert first[3].dtype == np.int16
    assert np.asarray(first[4]).tolist() == [False, False, True, True]


@xs.kernel(out=xs.Out("f8", width=2))
def ends(window, out):
    out[0], out[1] = window[0], window[-1]


@xs.kernel(out=xs.Out("f8", rate=Fraction(1, 2)))
def every_other(window, out):
    for i in range(len(out)):
        out[i] = window[2 * i]


@xs.kernel(out={"low": xs.Out("f8", rate=Fraction(1, 2)), "high": xs.Out("f4", rate=2)})
def down_and_up(window, out):
    low, high = out
    low[:] = window[: len(low)]
    high[:] = 1


def test_arrays_to_fill_have_the_declared_width_rate_and_start() -> None:
    samples = np.arange(10.0)
    found = run_over(samples, lambda src: src.map(ends), start=100)
    assert [(s.start, np.asarray(s).tolist()) for s in found] == [
        (100, [0.0, 3.0]), (104, [4.0, 7.0]), (108, [8.0, 9.0]),
    ]  # fmt: skip
    found = run_over(samples, lambda src: src.map(every_other), rate_hz=8.0, start=100)
    assert [(s.start, np.asarray(s).tolist()) for s in found] == [
        (50, [0.0, 2.0]), (52, [4.0, 6.0]), (54, [8.0]),
    ]  # fmt: skip
    assert found[0].timebase.rate_hz == 4.0
    found = run_over(samples, lambda src: src.map(down_and_up), rate_hz=8.0, start=-3)
    low, high = found[0]
    assert (low.start, low.width, low.timebase.rate_hz) == (-2, 2, 4.0)  # -1.5 rounds down
    assert (high.start, high.width, high.timebase.rate_hz) == (-6, 8, 16.0)


@xs.kernel(out=xs.Out("f8", start="running"))
def drop_the_first(window, out):
    out.emit(window[1:])


@xs.kernel(out=xs.Out("f8", start="given"))
def at_thousands(window, out):
    out.emit_at(1000 * window[0], window)
    out.emit_at(-5, window[:0])


@xs.kernel(out=xs.Out("f8", start="input", rate=2))
def at_input(window, out):
    out.emit(window)


def test_start_rules_of_emitted_segments() -> None:
    samples = np.arange(8.0)
    found = run_over(samples, lambda src: src.iterate(drop_the_first), start=7)
    assert [segment.start for segment in found] == [0, 3]
    found = run_over(samples, lambda src: src.iterate(at_thousands))
    assert [(s.start, s.width) for s in found] == [(0, 4), (-5, 0), (4000, 4), (-5, 0)]
    found = run_over(samples, lambda src: src.iterate(at_input), start=7)
    assert [segment.start for segment in found] == [7, 11]


@xs.kernel(state={"many": np.zeros(1, np.int32), "few": np.zeros(3), "n": np.zeros(1, np.int64)})
def grow_both(window, state):
    """Grows one array a hundred times a call and writes through the array from before as well."""
    n = state.n[0]
    many = state.many
    for _ in range(100):
        before = many
        many = xs.grow(many, n + 1)
        many[n] = n
        before[0] = 0
        n += 1
    for i in range(n):
        if many[i] != i:
            raise ValueError("lost", i, many[i])
    few = xs.grow(state.few, 3)
    few[2] += 1
    if few[2] * 100 != n:
        raise ValueError("the small state was lost")
    state.n[0] = n
    return len(many) == n


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_state_survives_many_reallocations(memory: str) -> None:
    q = xs.Query()
    out = q.source(xs.io.array(np.zeros(300), window=1)).filter(grow_both).count()
    assert q.run(memory=memory)[out] == 300
    assert q.run(memory=memory)[out] == 300  # fresh for each run of the same query


@xs.kernel(state=np.arange(2000, dtype=np.float64))
def large_state(window, state):
    state[0] += 1
    grown = xs.grow(state, 4000)
    return state[0] == window[0] + 1 and grown[1999] == 1999 and grown[3999] == 0


def test_large_state_too() -> None:
    assert len(run_over(np.arange(50.0), lambda src: src.filter(large_state), window=1)) == 50


@xs.kernel(state=np.zeros(1))
def grows_an_input(window, state):
    xs.grow(window, 100)
    return True


@xs.kernel(state=np.zeros(9))
def grows_a_slice(window, state):
    xs.grow(state[1:], 100)
    return True


@pytest.mark.parametrize("kernel", [grows_a_slice, grows_an_input])
def test_only_a_whole_state_array_can_grow(kernel: xs.Kernel) -> None:
    with pytest.raises(xs.OperatorError, match=r"xs\.grow takes a whole state array"):
        run_over(np.zeros(4), lambda src: src.filter(kernel))


@xs.kernel
def weigh(window, weights, scale, shift, positive):
    return (window * weights[: len(window)]).sum() * scale + shift if positive else -1.0


def test_arguments_are_numbers_and_arrays() -> None:
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    q = xs.Query()
    src = q.source(xs.io.array(np.arange(4.0), window=4))
    outs = [
        src.map(weigh, weights, 2.0, 1, True).collect(),
        src.map(weigh, weights[::-1], np.float64(0.5), np.int8(-1), np.bool_(True)).collect(),
        src.map(weigh, weights, 2.0, 1, False).collect(),
    ]
    weights[:] = 0  # what was given is what counts
    run = q.run()
    assert [run[out] for out in outs] == [[6421.0], [0.5 * 123.0 - 1], [-1.0]]


def test_a_kernel_compiles_once_for_any_values_of_its_arguments() -> None:
    apply_module._compiled.cache_clear()
    q = xs.Query()
    src = q.source(xs.io.array(np.arange(4.0, dtype=np.float32)))
    for alpha in range(20):
        src.filter(kernels.louder, float(alpha)).count()
    assert apply_module._compiled.cache_info().misses == 1


@pytest.mark.parametrize("argument", [None, "text", [[1.0]], 2**63, -(2**63) - 1, {}])
def test_other_arguments_are_refused(argument: Any) -> None:
    src = xs.Query().source(xs.io.array(np.zeros(4, np.float32)))
    with pytest.raises(xs.KernelError, match="kernel 'louder': an argument is a number of"):
        src.filter(kernels.louder, argument)


@xs.kernel
def divide(a, b):
    return a / b, a // b if b == b else 0.0


@xs.kernel
def divide_integers(a, b):
    return a // b, a % b


def test_division_by_zero_is_numpys() -> None:
    """error_model="numpy": infinities and NaN for floats, 0 for integers; never an error."""
    q = xs.Query()
    floats = q.source(xs.io.iterable([(1.0, 0.0), (0.0, 0.0), (-1.0, 0.0)], out=(float, float)))
    ints = q.source(xs.io.iterable([(7, 0), (7, 2)], out=(int, int)))
    quotients, whole = floats.map(divide).collect(), ints.map(divide_integers).collect()
    run = q.run()
    assert str([a for a, _ in run[quotients]]) == "[inf, nan, -inf]"
    assert run[whole] == [(0, 0), (3, 1)]


@xs.kernel
def sum_of_many(a, b, c):
    return a + b + c


def test_tuples_have_up_to_64_fields() -> None:
    assert len(xs.schema((int,) * 64)) == 64
    with pytest.raises(xs.SchemaError, match="1 to 64 fields, not 65"):
        xs.schema((int,) * 65)
    q = xs.Query()
    wide = (xs.Segment("f8"),) * 63 + (int,)
    rows = [(*(xs.SigSeg(np.full(2, float(k)), start=k) for k in range(63)), 7)]
    src = q.source(xs.io.iterable(rows * 3, out=wide))
    out = src.passed().filter(lambda *fields: fields[-1] == 7).map(
        lambda *fields: fields, out=wide
    ).collect()  # fmt: skip
    for scheduler in xs.SCHEDULER_NAMES:
        for memory in xs.MANAGER_NAMES:
            run = q.run(scheduler, memory)
            found = run[out]
            assert [segment.start for segment in found[2][:63]] == list(range(63))
            assert found[2][63] == 7
            assert float(np.asarray(found[1][62])[1]) == 62.0


def test_a_kernel_is_still_a_function() -> None:
    assert kernels.louder(np.array([1.0, 3.0]), 0.5)
    assert repr(kernels.louder) == "<kernel louder(window, alpha)>"


@xs.kernel
def difference(y, x, times):  # type: ignore[no-untyped-def]
    return times * (y - x)


@xs.kernel
def first_two(a, b, times):  # type: ignore[no-untyped-def]
    return times * (b - a)


@pytest.mark.parametrize(
    ("kernel", "expected"), [(difference, [20.0, 40.0]), (first_two, [20.0, 40.0])]
)
def test_parameters_take_fields_by_name_or_else_in_order(
    kernel: xs.Kernel, expected: list[float]
) -> None:
    """`difference` names two fields of three, in another order; `first_two` names none of two."""
    rows = [(1.0, 7.0, 3.0), (2.0, 8.0, 6.0)]
    query = xs.Query()
    stream = query.source(xs.io.iterable(rows, out={"x": float, "unused": float, "y": float}))
    if kernel is first_two:
        stream = stream.select("x", "y")
    out = stream.map(kernel, 10).collect()
    assert query.run()[out] == expected


def test_a_field_that_no_parameter_names_is_not_made_contiguous() -> None:
    @xs.kernel
    def of_one(here):  # type: ignore[no-untyped-def]
        return here.sum()

    pieces = xs.SigSeg(np.arange(4)).append(xs.SigSeg(np.arange(4, 6), start=4))
    query = xs.Query()
    fields = {"here": xs.Segment(np.int64), "there": xs.Segment(np.int64)}
    rows = [(xs.SigSeg(np.arange(3)), pieces)]
    source = query.source(xs.io.iterable(rows, out=fields))
    out, kept = source.map(of_one).collect(), source.select("there").collect()
    run = query.run(memory=pieces.manager)
    assert run[out] == [3]
    assert run[kept][0].pieces == 2
