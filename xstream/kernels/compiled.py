"""`@xs.compiled`: numba functions outside of kernels, in the same cache as kernels.

Numba's own `cache=True` looks at the file of the function only. Machine code that was compiled with
an older helper of another file, or with another value of a global, would be loaded unnoticed. Here
the file of the machine code is named by the fingerprint of the function and of everything that it
reaches, so that a change anywhere leads to new code.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from xstream.kernels import _cache
from xstream.kernels._fingerprint import fingerprint

__all__ = ["compiled"]

_DIGEST_BYTES = hashlib.sha256().digest_size


def compiled(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Compile a function with numba when it is first called, and keep the machine code on disk.

    The result is what `numba.njit(nogil=True, **options)` returns: it can be called from Python,
    from kernels and from other compiled functions. The code is compiled again when the function, a
    function that it calls or a global that it reads has changed, in whichever file that is.

    >>> import numpy as np, xstream as xs
    >>> @xs.compiled
    ... def longest_run(values):
    ...     best = run = 0
    ...     for i in range(1, len(values)):
    ...         run = run + 1 if values[i] > values[i - 1] else 0
    ...         best = max(best, run)
    ...     return best
    >>> longest_run(np.array([3, 1, 2, 5, 4]))
    2
    """
    from numba import config, njit

    if function is None:
        return lambda function: compiled(function, **options)

    made = njit(**{"nogil": True, **options})(function)
    if not config.DISABLE_JIT:
        made._cache = _FingerprintedCache(function, options)
    return made


class _FingerprintedCache:
    """Numba's cache interface for one function (numba.core.caching._Cache)."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(_cache.cache_directory())

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: there is no index in memory."""

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code for a signature; None if it is missing or damaged."""
        from numba.core.compiler import CompileResult

        target_context.refresh()
        path = self._path(signature, target_context.codegen())
        if path is None:
            return None
        try:
            data = path.read_bytes()
            if hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
                return None  # damaged: compile and write it again
            os.utime(path)  # marks the code as recently used
        except OSError:
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(data[_DIGEST_BYTES:]))

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write the code for a signature; a cache that cannot be written is no error."""
        from numba.core.serialize import dumps

        path = self._path(signature, result.codegen)
        if path is None or result.lifted or result.library.has_dynamic_globals:
            return
        data = dumps(result._reduce())
        with suppress(OSError):
            _cache.write_whole(path, hashlib.sha256(data).digest() + data)
            _cache.prune(path.parent)

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        directory = _cache.trusted_directory()
        if directory is None or not self._enabled:
            return None
        context = (sorted(self._options.items()), str(signature), codegen.magic_tuple())
        # Asked for when it is called: only then are all functions of its module defined.
        return directory / f"k{fingerprint(self._function, *context)}.code"
