"""Kernels of one sample: what they compute, the type of what comes out, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import xstream as xs

Everywhere = Callable[..., list[Any]]


@xs.kernel(each=True)
def gain(x, factor):
    return x * factor + 0.1


@xs.kernel(each=True)
def above(x, level):
    return x > level


@xs.kernel(each=True)
def clipped(x):
    return x if x < 2.5 else 0.7


@xs.kernel(each=True)
def half(x):
    return x // 2


@xs.kernel(each=True)
def twice_and_flag(x):
    return 2 * x, x > 3


@xs.kernel(each=True, out=np.float64)
def wide(x):
    return x * np.float64(0.1)


@xs.kernel(each=True, state={"last": np.zeros(1), "n": np.zeros(1, np.int64)})
def rise(x, state):
    step = x - state.last[0]
    state.last[0] = x
    state.n[0] += 1
    return step


@xs.kernel(each=True)
def weighted(left, right, scale):
    return left * scale + right


@xs.kernel(each=True)
def from_table(x, table):
    return table[int(x) % len(table)]


@xs.kernel(each=True)
def refuses_seven(x):
    if x == 7:
        raise ValueError("seven is one too many")
    return x


def mapped(samples: Any, kernel: xs.Kernel, *arguments: Any) -> Any:
    q = xs.Query()
    out = q.source(xs.io.array(samples, window=4)).map(kernel, *arguments).collect()
    return np.concatenate([np.asarray(seg) for seg in q.run()[out]])


@settings(max_examples=25, deadline=None)
@given(arrays.arrays(np.float32, st.integers(1, 20), elements=st.floats(-1e3, 1e3, width=32)))
def test_float32_computes_as_numpy_scalars_do(samples: Any) -> None:
    """Constants and arguments are weak, as in numpy 2: the Python function is the reference."""
    found = mapped(samples, gain, 1.01)
    assert found.dtype == np.float32
    assert found.tolist() == [gain(x, 1.01) for x in samples]
    assert mapped(samples, clipped).tolist() == [np.float32(clipped(x)) for x in samples]


@pytest.mark.parametrize(
    ("dtype", "kernel", "arguments", "result"),
    [
        ("f4", gain, (2,), "f4"), ("f8", gain, (2.0,), "f8"), ("i2", gain, (2,), "f8"),
        ("c8", gain, (2.0,), "c8"), ("c16", gain, (2.0,), "c16"), ("i2", half, (), "i2"),
        ("u4", half, (), "u4"), ("f4", wide, (), "f8"), ("f4", above, (1.0,), "?"),
    ],
)  # fmt: skip
def test_results_keep_the_type_of_the_samples(
    dtype: str, kernel: xs.Kernel, arguments: Any, result: str
) -> None:
    samples = np.arange(10).astype(dtype)
    found = mapped(samples, kernel, *arguments)
    assert found.dtype == np.dtype(result)
    assert np.allclose(found, [kernel(x, *arguments) for x in samples])


def test_segments_everywhere(same_everywhere: Everywhere) -> None:
    samples = np.random.default_rng(5).normal(size=150).astype(np.float32)

    def declare(q: xs.Query) -> Any:
        src = q.source(xs.io.array(samples, rate_hz=10.0, window=16, start=3))
        rises = src.map(gain, 0.3).map(rise)
        return [
            rises.collect(),
            src.filter(above, 0.2).collect(),
            src.map(twice_and_flag).collect(),
        ]

    rises, loud, pairs = same_everywhere(declare)
    gained = np.array([gain(x, 0.3) for x in samples])
    expected = np.diff(gained.astype(np.float64), prepend=0.0).astype(np.float32)
    assert np.concatenate([values for _, values in rises]).tolist() == expected.tolist()
    assert [start for start, _ in rises] == list(range(3, 153, 16))
    assert [x for _, run in loud for x in run] == samples[samples > np.float32(0.2)].tolist()
    for start, run in loud:  # in their place, and as long as they can be within a window
        assert samples[start - 3 : start - 3 + len(run)].tolist() == run
        stop = start - 3 + len(run)
        assert stop % 16 == 0 or stop == 150 or samples[stop] <= np.float32(0.2)
    assert [x for (_, run), _ in pairs for x in run] == (2 * samples).tolist()
    assert [x for _, (_, run) in pairs for x in run] == (samples > 3).tolist()


def test_scalars_are_one_tuple_a_sample(same_everywhere: Everywhere) -> None:
    @xs.kernel(each=True)
    def louder(value, level):
        return abs(value) > level

    @xs.kernel(each=True, out=np.float32)
    def scaled(value, factor):
        return value * factor

    def declare(q: xs.Query) -> Any:
        src = q.source(xs.io.samples(np.arange(-5.0, 6.0)))
        return [src.filter(louder, 3.5).collect(), src.map(scaled, 0.1).map(gain, 0.5).collect()]

    loud, found = same_everywhere(declare)
    assert loud == [(0, -5.0), (1, -4.0), (9, 4.0), (10, 5.0)]
    assert found == [gain(np.float32(x * 0.1), 0.5) for x in np.arange(-5.0, 6.0)]


def test_fields_are_bound_by_name_and_widths_must_agree() -> None:
    def run(window: int) -> Any:
        q = xs.Query()
        a = q.source(xs.io.array(np.arange(8, dtype=np.float32), window=4))
        b = q.source(xs.io.array(np.ones(8, np.float32), window=window))
        both = a.zip(b).map(_named)
        out = both.map(weighted, 2.0).collect()
        return [np.asarray(seg).tolist() for seg in q.run()[out]]

    assert run(4) == [[1.0, 3.0, 5.0, 7.0], [9.0, 11.0, 13.0, 15.0]]
    with pytest.raises(xs.OperatorError, match=r"map\(weighted\).*different widths"):
        run(2)


@xs.kernel(out={"right": xs.Out("f4"), "left": xs.Out("f4")})
def _named(value, value1):
    return value1, value


def test_arrays_are_arguments_of_every_sample() -> None:
    table = np.array([5.0, 7.0, 9.0])
    assert mapped(np.arange(7), from_table, table).tolist() == [5.0, 7.0, 9.0, 5.0, 7.0, 9.0, 5.0]


def test_state_is_kept_and_given() -> None:
    q = xs.Query()
    stream = q.source(xs.io.array(np.array([1.0, 4.0, 9.0]), window=2)).map(rise)
    out = stream.collect()
    first = q.run()
    assert first.state(stream)["last"].tolist() == [9.0]
    assert first.state(stream)["n"].tolist() == [3]
    second = q.run(state={stream: first.state(stream)})
    assert np.asarray(second[out][0]).tolist() == [-8.0, 3.0]


def test_errors_name_the_operator_and_the_tuple() -> None:
    q = xs.Query()
    q.source(xs.io.array(np.arange(10.0), window=4)).map(refuses_seven).count()
    for debug in (False, True):
        with pytest.raises(xs.OperatorError, match=r"map\(refuses_seven\).*\[4, 8\).*one too many"):
            q.run(debug=debug)


def test_debug_mode_checks_the_function_too() -> None:
    @xs.kernel(each=True)
    def inverse(x):
        return 1.0 / x

    q = xs.Query()
    out = q.source(xs.io.array(np.arange(2.0))).map(inverse).collect()
    assert np.asarray(q.run()[out][0]).tolist() == [np.inf, 1.0]
    with pytest.raises(xs.OperatorError, match="ZeroDivisionError"):
        q.run(debug=True)


def test_what_is_refused() -> None:
    @xs.kernel(each=True)
    def text(x):
        return "loud"

    @xs.kernel(each=True)
    def unknown(x):
        return undefined_name(x)  # noqa: F821

    @xs.kernel(each=True, out=xs.Out("f4"))
    def segment_out(x):
        return x

    q = xs.Query()
    src = q.source(xs.io.array(np.arange(4.0)))
    with pytest.raises(xs.KernelError, match="a number or a tuple of numbers"):
        src.map(text)
    with pytest.raises(xs.KernelError, match="'unknown' does not compile"):
        src.map(unknown)
    with pytest.raises(xs.KernelError, match="the type of a sample"):
        src.map(segment_out)
    with pytest.raises(xs.KernelError, match="returns a flag"):
        src.filter(gain, 1.0)
    with pytest.raises(xs.KernelError, match="goes with map and filter"):
        src.iterate(gain, 1.0)
    with pytest.raises(xs.KernelError, match="scalars or a stream of segments"):
        src.zip(src).filter(weighted_flag)
    with pytest.raises(xs.KernelError, match="at_end=True has no meaning"):
        xs.kernel(each=True, at_end=True)(gain.function)
    with pytest.raises(xs.KernelError, match="parameter 'out' has no meaning"):
        xs.kernel(each=True)(lambda x, out: x)


@xs.kernel(each=True)
def weighted_flag(value, value1):
    return value > value1
