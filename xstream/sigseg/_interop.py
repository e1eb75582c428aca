"""Exchange with numpy, Arrow and DLPack: supported dtypes and zero-copy views."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import ffi, lib
from xstream.errors import DtypeError

_HOLDABLE_KINDS = "biufc"


def holdable_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return `dtype` in native byte order; raise a DtypeError if a segment cannot hold it."""
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        raise DtypeError(f"a segment cannot hold {dtype!r}: not a numpy dtype") from None
    if wanted.subdtype is not None:
        raise DtypeError(f"a segment cannot hold dtype {wanted}: a sample is one value or record")
    _check_leaf_types(wanted, wanted)
    return wanted if wanted.isnative else wanted.newbyteorder("=")


def _check_leaf_types(dtype: np.dtype[Any], whole: np.dtype[Any]) -> None:
    if dtype.names is not None:
        for name in dtype.names:
            _check_leaf_types(dtype[name], whole)
    elif dtype.subdtype is not None:
        _check_leaf_types(dtype.subdtype[0], whole)
    elif dtype.kind not in _HOLDABLE_KINDS or dtype.char in "gG":
        inside = "" if dtype is whole else f" (inside {whole})"
        raise DtypeError(
            f"a segment cannot hold dtype {dtype}{inside}: samples are booleans, integers, "
            "float16/32/64, complex64/128, or records of those"
        )
    if dtype.itemsize == 0:
        raise DtypeError(f"a segment cannot hold dtype {whole}: its items have no bytes")


def owned_memory(data: Any, nbytes: int, release: Callable[[Any, Any], None], owner: Any) -> Any:
    """Return a writable buffer over `data`; `release(owner, data)` runs after its last use.

    `release` is a function of the core: Python would raise a pending Ctrl-C inside a finaliser
    that is written in Python, and then ignore it.
    """
    kept = ffi.gc(ffi.cast("char *", data), partial(release, owner))
    return ffi.buffer(kept, nbytes)


def view_of(data: Any, width: int, dtype: np.dtype[Any], hold: Any) -> npt.NDArray[Any]:
    """Return a read-only array over `width` samples at `data`, which releases `hold` when freed."""
    memory = owned_memory(data, width * dtype.itemsize, lib.xs_block_unhold_data, hold)
    # np.ndarray(buffer=...) would bypass the memoryview and could be made writable again.
    return np.frombuffer(memoryview(memory).toreadonly(), dtype)


def arrow_type(dtype: np.dtype[Any]) -> Any:
    """Return the Arrow type with the same bytes; raise a DtypeError if there is none."""
    import pyarrow as pa

    if dtype.kind not in "iuf":
        raise DtypeError(f"Arrow cannot express dtype {dtype} without a copy")
    return pa.from_numpy_dtype(dtype)


def arrow_array(samples: npt.NDArray[Any], type_: Any) -> Any:
    """Return an Arrow array over the memory of `samples`."""
    import pyarrow as pa

    return pa.Array.from_buffers(type_, len(samples), [None, pa.py_buffer(samples)])


def check_dlpack(dtype: np.dtype[Any]) -> None:
    """Raise a DtypeError if DLPack has no such type."""
    if dtype.kind not in "biufc":
        raise DtypeError(f"DLPack cannot express dtype {dtype}")


def same_samples(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Compare by value; NaN equals NaN, so that a segment always equals itself."""
    if a.dtype.names is not None:
        return all(same_samples(a[name], b[name]) for name in a.dtype.names)
    equal = a == b
    if a.dtype.kind in "fc":
        equal |= (a != a) & (b != b)
    return bool(equal.all())
