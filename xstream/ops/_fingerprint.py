"""A fingerprint of everything that compiled code depends on, so that a cache cannot go stale.

Numba's own cache looks at the file of the function and misses a helper in another file or a
changed global. This one follows the code: byte code, constants, the globals and attributes that
it names, closures, and so on through every function that is reached.
"""

from __future__ import annotations

import hashlib
import sys
import types
from typing import Any

import numpy as np

#: Installed packages change with their versions, which are part of the fingerprint; no need to
#: follow their code.
_OPAQUE_ROOTS = {"numpy", "numba", "math", "cmath", "scipy", "llvmlite", "builtins", "operator"}


def fingerprint(function: types.FunctionType, *context: object) -> str:
    """A hash of `function`, of what it reaches, and of `context`."""
    import llvmlite
    import numba

    digest = hashlib.sha256()
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    for item in (*versions, *context):
        digest.update(repr(item).encode())
        digest.update(b"\0")
    _add(digest, function, set())
    return digest.hexdigest()[:32]


def _plain_function(value: Any) -> types.FunctionType | None:
    """The Python function behind a function, a numba dispatcher or a kernel."""
    for attribute in ("py_func", "function"):
        inner = getattr(value, attribute, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return value if isinstance(value, types.FunctionType) else None


def _add(digest: Any, function: types.FunctionType, seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    _add_code(digest, function.__code__)
    digest.update(repr(function.__defaults__).encode())
    names = _names(function.__code__)
    for name in sorted(names):
        if name in function.__globals__:
            digest.update(name.encode())
            _add_value(digest, function.__globals__[name], names, seen)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        digest.update(name.encode())
        _add_value(digest, cell.cell_contents, names, seen)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _add_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(digest, constant)
        else:
            digest.update(repr(constant).encode())


def _add_value(digest: Any, value: Any, names: set[str], seen: set[int]) -> None:
    function = _plain_function(value)
    options = getattr(value, "targetoptions", None)
    if options:  # njit(fastmath=...) makes other code of the same function
        digest.update(repr(sorted(options.items(), key=str)).encode())
    if function is not None:
        if function.__module__.partition(".")[0] in _OPAQUE_ROOTS:
            digest.update(f"{function.__module__}.{function.__qualname__}".encode())
        else:
            _add(digest, function, seen)
    elif isinstance(value, types.ModuleType):
        digest.update(value.__name__.encode())
        if value.__name__.partition(".")[0] not in _OPAQUE_ROOTS:
            for name in sorted(names & set(vars(value))):
                digest.update(name.encode())
                _add_value(digest, getattr(value, name), names, seen)
    elif isinstance(value, np.ndarray):
        digest.update(repr((value.dtype, value.shape)).encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        for item in value:
            _add_value(digest, item, names, seen)
    else:
        digest.update(repr(value).encode())
