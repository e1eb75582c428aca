"""The arguments of kernels: accepted values, their types, and their words in the frame.

Numpy's numbers keep their type. Python's numbers are weak, as in numpy 2: see `_weak`. Arrays keep
their dtype. The type of a number is named as its class is: `float` is Python's, `float64` numpy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xstream._native import ffi
from xstream.errors import KernelError
from xstream.kernels.kernel import Kernel

__all__ = [
    "ArgumentType",
    "argument_types",
    "argument_words",
    "normal_arguments",
    "numpy_arguments",
    "write_argument",
]

#: The part of an argument that code depends on: a number's type name, or an array's dtype.
ArgumentType = str | np.dtype[Any]
#: The types of Python numbers that are not weak.
_NUMPY_OF = {float: np.float64, int: np.int64, complex: np.complex128}


def normal_arguments(kernel: Kernel, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as numbers of Python or numpy and as own, contiguous arrays of one dimension."""
    return tuple(_normal(kernel, value) for value in arguments)


def _normal(kernel: Kernel, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return int(value)
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return float(value) if isinstance(value, float) else complex(value)
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((0, 0))
    kind, item = array.dtype.kind, array.dtype.itemsize
    if array.ndim == 0 and kind in "biufc" and not isinstance(value, int | str):
        parts = item // 2 if kind == "c" else item
        if kind in "fc" and parts not in (4, 8):
            raise KernelError(
                f"kernel {kernel.name!r}: numba cannot express the argument {value!r} of type "
                f"{array.dtype}: convert it first"
            )
        return array[()]
    if array.ndim == 0 and isinstance(value, bool):
        return np.bool_(value)
    if array.ndim == 1 and (kind in "biufc" or _is_record(array.dtype)):
        return np.array(array, order="C")
    raise KernelError(
        f"kernel {kernel.name!r}: an argument is a number of at most 64 bits (complex: 128) or an "
        f"array of numbers in one dimension, not {value!r}"
    )


def _is_record(dtype: np.dtype[Any]) -> bool:
    return dtype.names is not None and not dtype.hasobject


def numpy_arguments(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Normal arguments of which no number is weak: Python's are float64, int64 and complex128."""
    return tuple(_NUMPY_OF.get(type(value), lambda same: same)(value) for value in arguments)


def argument_types(arguments: tuple[Any, ...]) -> tuple[ArgumentType, ...]:
    """Return the types of normal arguments, for which a kernel is compiled."""
    return tuple(_type(value) for value in arguments)


def _type(value: Any) -> ArgumentType:
    dtype: np.dtype[Any] | None = getattr(value, "dtype", None)
    if dtype is None:
        return type(value).__name__
    return dtype if isinstance(value, np.ndarray) else str(dtype)


def argument_words(type_: ArgumentType) -> int:
    """Return the number of frame words of an argument; an array takes an address and a length."""
    return 2 if isinstance(type_, np.dtype) or type_.startswith("complex") else 1


def write_argument(frame: Any, at: int, value: Any) -> None:
    """Write a normal argument to the words from `at` on; the caller keeps arrays alive."""
    floats = ffi.cast("double *", frame)
    if isinstance(value, np.ndarray):
        frame[at], frame[at + 1] = value.ctypes.data, len(value)
    elif isinstance(value, complex | np.complexfloating):
        floats[at], floats[at + 1] = value.real, value.imag
    elif isinstance(value, float | np.floating):
        floats[at] = value
    elif isinstance(value, np.uint64):
        frame[at] = int(value.view(np.int64))
    else:
        frame[at] = int(value)
