"""Arguments of kernels: numpy's numbers keep their type, Python's are weak as in numpy 2."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
FLOATS = ["f4", "f8", "c8", "c16"]


def mapped(samples: Any, kernel: xs.Kernel, *arguments: Any) -> Any:
    """One window of samples through a kernel: the array that comes out, or the number."""
    q = xs.Query()
    src = q.source(xs.io.array(np.asarray(samples), window=len(samples)))
    out = src.map(kernel, *arguments).collect()
    (found,) = q.run()[out]
    return np.asarray(found) if isinstance(found, xs.SigSeg) else found


@xs.kernel
def scaled(window, gain):
    return window * gain


@xs.kernel
def scaled_one_by_one(window, gain):
    out = np.empty(len(window), (window[:1] * gain).dtype)
    for i in range(len(window)):
        out[i] = window[i] * gain
    return out


@numba.njit
def helper(window, gain):
    return window * gain


@xs.kernel
def scaled_by_a_helper(window, gain):
    return helper(window, gain)


@xs.kernel
def expression(window, low, gain):
    return np.maximum(window - low, -gain) * (2 * gain) + np.where(window > low, window, gain)


@xs.kernel
def clipped(window, low, high):
    return np.clip(window, low, high)


SCALES = [scaled, scaled_one_by_one, scaled_by_a_helper]


@pytest.mark.parametrize(
    ("kernel", "dtype", "gain"),
    [
        *((kernel, "f4", gain) for kernel in SCALES for gain in (1.01, 3)),
        *((scaled, "f4", gain) for gain in (2 - 1j, np.float32(1.01), np.float64(1.01))),
        *((scaled, dtype, gain) for dtype in ("i2", "f8", "c8") for gain in (1.01, 3)),
    ],
    ids=str,
)
def test_results_have_the_type_and_the_bits_that_numpy_gives(
    kernel: xs.Kernel, dtype: str, gain: Any
) -> None:
    samples = np.array([1, -2, 3, 100], dtype)
    expected = samples * gain
    found = mapped(samples, kernel, gain)
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "c":  # numpy may use fused instructions for these
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    else:
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("gain", [np.int16(3), np.uint8(3)], ids=repr)
def test_small_integers_of_numpy_keep_their_type(gain: Any) -> None:
    samples = np.array([1, -2, 3], np.int16)
    found = mapped(samples, scaled, gain)
    assert found.dtype == (samples * gain).dtype == np.int16
    assert found.tolist() == (samples * gain).tolist()


@xs.kernel
def added(window, number):
    return window.astype(np.complex128) + number


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_of_a_number_is_kept(dtype: str) -> None:
    number = np.dtype(dtype).type(1 if dtype in ("?", *DTYPES[1:9]) else 0.1)
    if dtype == "u8":
        number = np.uint64(2**63)
    found = mapped(np.zeros(1), added, number)
    assert found[0] == complex(number)


@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_a_whole_expression_stays_in_the_type_of_its_window(dtype: str) -> None:
    samples = np.linspace(-2, 2, 9).astype(dtype)
    expected = expression(samples, 0.1, 1.7)
    found = mapped(samples, expression, 0.1, 1.7)
    assert found.dtype == expected.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    assert mapped(samples, clipped, -1.0, 1).dtype == np.dtype(dtype)


@xs.kernel
def digits(window, number):
    """A weak number in every place where it is plain: storing, functions, sums, returning."""
    kept = np.empty(2)
    kept[0] = number
    total = number
    for x in window:
        total += x * 0
    kept[1] = total
    return kept[0], kept[1], math.sqrt(number), number, np.float64(number) * 3


def test_a_python_float_keeps_its_digits_next_to_float64() -> None:
    found = mapped(np.zeros(3, np.float32), digits, 0.1)
    assert found == (0.1, 0.1, math.sqrt(0.1), 0.1, 0.1 * 3)
    assert mapped(np.ones(1), scaled, 0.1)[0] == 0.1
    assert mapped(np.ones(1, np.int32), scaled, 0.1)[0] == 0.1


@xs.kernel
def over(window, level):
    return np.array([window[0] > level, level < window[0], window[0] == level])


def test_a_comparison_rounds_a_python_float_as_numpy_does() -> None:
    samples = np.array([0.1], np.float32)
    for level in (0.1, np.float32(0.1), np.float64(0.1)):
        x = samples[0]
        assert mapped(samples, over, level).tolist() == [x > level, level < x, x == level]


@xs.kernel
def indexed(window, n):
    steps = 0
    for _ in range(n):
        steps += 1
    return window[n], np.full(n, n), steps, window[:n], n // 2, np.zeros(n)


def test_python_integers_are_indices_and_lengths() -> None:
    item, filled, steps, cut, half, zeros = mapped(np.arange(5.0), indexed, 3)
    assert (item, np.asarray(filled).tolist(), steps, half) == (3.0, [3, 3, 3], 3, 1)
    assert np.asarray(cut).tolist() == [0.0, 1.0, 2.0]
    assert filled.dtype == np.int64
    assert zeros.width == 3


def test_python_integers_count_in_64_bits_next_to_single_small_ones() -> None:
    @xs.kernel
    def product(window, n):
        return window[0] * n, window[0] > n

    assert mapped(np.array([100], np.int8), product, 1000) == (100_000, False)


@settings(deadline=None, max_examples=60)
@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_any_float_times_any_float(sample: float, gain: float) -> None:
    samples = np.full(3, sample, np.float32)
    with np.errstate(all="ignore"):
        try:
            expected = samples * gain
        except OverflowError:
            return
    assert mapped(samples, scaled, gain).tobytes() == expected.tobytes()


def test_types_of_arguments_are_compiled_for_and_values_are_not() -> None:
    q = xs.Query()
    src = q.source(xs.io.array(np.ones(4, np.float32), window=4))
    outs = [src.map(scaled, gain) for gain in (2.0, 3.0, np.float64(2.0), np.float32(2.0), 2)]
    assert [out.schema.types[0].dtype.name for out in outs] == [
        "float32", "float32", "float64", "float32", "float32",
    ]  # fmt: skip


def test_numbers_of_a_type_that_numba_lacks_are_refused() -> None:
    src = xs.Query().source(xs.io.array(np.ones(4, np.float32)))
    for number in (np.float16(1), np.longdouble(1)):
        with pytest.raises(xs.KernelError, match=f"cannot express.*{number.dtype}: convert it"):
            src.map(scaled, number)


def test_arrays_keep_their_dtype_and_so_do_numbers_of_no_dimension() -> None:
    samples = np.ones(3, np.float32)
    assert mapped(samples, scaled, np.full(3, 2, np.float32)).dtype == np.float32
    assert mapped(samples, scaled, [2.0, 2.0, 2.0]).dtype == np.float64
    assert mapped(samples, scaled, np.array(2.0)).dtype == np.float64


def test_operators_of_the_library_calculate_with_float64() -> None:
    level = 0.1  # between the float32 neighbours of 0.1
    q = xs.Query()
    samples = np.array([level], np.float32)
    out = q.source(xs.io.array(samples)).threshold(level).collect()
    assert q.run()[out] == [(bool(float(samples[0]) > level), 0, 1)]


@pytest.mark.parametrize("kernel", [scaled, scaled_one_by_one], ids=["array", "loop"])
@pytest.mark.parametrize("gain", [1.01, 3, np.float32(1.01), np.float64(1.01)], ids=repr)
def test_arguments_are_as_weak_in_compiled_chains(kernel: xs.Kernel, gain: Any) -> None:
    """Every map of a chain that is compiled into one function rounds as it does alone."""
    samples = np.random.default_rng(4).normal(size=500).astype(np.float32)
    q = xs.Query()
    stream = q.source(xs.io.array(samples, window=100))
    expected: Any = samples
    for _ in range(3):
        stream, expected = stream.map(kernel, gain), expected * gain
    out = stream.collect()
    for fuse in (True, False):
        found = np.concatenate([np.asarray(window) for window in q.run(fuse=fuse)[out]])
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
