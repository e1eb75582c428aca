"""A fingerprint of everything that compiled code depends on, so that a cache cannot go stale.

Numba's own cache looks at the file of the function and misses a helper in another file or a
changed global. This one follows the code: byte code, constants, the globals and attributes that
it names, closures, defaults, the options of jitted helpers, and so on through every function that
is reached. What it cannot follow are implementations that were registered with numba
(`@overload`) outside of xstream: those must not change under a name.
"""

from __future__ import annotations

import enum
import hashlib
import re
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from xstream._native import lib

#: Installed packages change with their versions, which are part of the fingerprint; no need to
#: follow their code.
_OPAQUE_ROOTS = {
    "numpy", "numba", "math", "cmath", "scipy", "llvmlite", "builtins", "operator", "rocket_fft"
}  # fmt: skip
#: The parts of xstream that kernels use load names lazily and have implementations that only
#: numba sees, so the contents of these files are hashed instead.
_OPAQUE_MODULES = {
    "xstream", "xstream.kernels._numba", "xstream.kernels._emitter", "xstream.kernels._rolling",
    "xstream.kernels._pieces",
}  # fmt: skip
_OURS = (
    "_numba.py", "_emitter.py", "_weak.py", "_arguments.py", "_frame.py", "_adapter.py",
    "_adapter_source.py", "_inner.py", "_each.py", "_rolling.py", "_expression.py", "_links.py",
    "_debug.py", "_pieces.py", "_folded.py", "kernel.h",
)  # fmt: skip


def fingerprint(function: types.FunctionType, *context: object) -> str:
    """A hash of `function`, of what it reaches, and of `context`."""
    walk = _Walk()
    walk.add(_versions())
    for item in context:
        walk.add(repr(item))
    walk.function(function)
    return walk.digest.hexdigest()[:32]


def code_digest(function: types.FunctionType) -> str:
    """A hash of `function` and of what it reaches, whatever compiles it."""
    walk = _Walk()
    walk.function(function)
    return walk.digest.hexdigest()[:32]


@cache
def _versions() -> str:
    """The versions and settings of the compiler."""
    import llvmlite
    import numba

    config = numba.config
    ours = hashlib.sha256()
    for name in _OURS:
        path = Path(__file__).with_name(name)
        ours.update(path.read_bytes() if path.exists() else b"")  # a wheel has no C
    return repr(
        (sys.version, numba.__version__, llvmlite.__version__, np.__version__, ours.hexdigest(),
         lib.XS_FRAME_INPUTS, config.BOUNDSCHECK, config.OPT,
         config.LOOP_VECTORIZE, config.SLP_VECTORIZE)
    )  # fmt: skip


class _Walk:
    """Visits everything that a function reaches once."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.seen: dict[int, int] = {}
        self.modules: set[tuple[int, frozenset[str]]] = set()

    def add(self, text: str | bytes) -> None:
        """Add a string so that no two sequences of strings look alike."""
        data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
        self.digest.update(len(data).to_bytes(8, "little") + data)

    def function(self, function: types.FunctionType) -> None:
        """Its code, its defaults, and the globals, attributes and cells that it names."""
        if id(function) in self.seen:
            self.add(f"again {self.seen[id(function)]}")
            return
        self.seen[id(function)] = len(self.seen)
        self.code(function.__code__)
        self.value(function.__defaults__, set())
        self.value(function.__kwdefaults__, set())
        names = _names(function.__code__)
        for name in sorted(names):
            if name in function.__globals__:
                self.add(name)
                self.value(function.__globals__[name], names)
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            self.add(name)
            try:
                contents = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            self.value(contents, names)

    def code(self, code: types.CodeType) -> None:
        """Add the behaviour of the code, without its location."""
        self.add(code.co_code)
        self.add(code.co_exceptiontable)
        self.add(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
                       code.co_argcount, code.co_kwonlyargcount, code.co_flags)))  # fmt: skip
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)
            else:
                self.value(constant, set())

    def value(self, value: Any, names: set[str]) -> None:
        """A global, an attribute, a cell, a default or a constant."""
        options = getattr(value, "targetoptions", None)
        if isinstance(options, dict):  # njit's: fastmath, inline and so on
            self.value(options, set())
        function = _plain_function(value)
        if function is not None:
            if _opaque(function.__module__):
                self.add(f"{function.__module__}.{function.__qualname__}")
            else:
                self.function(function)
        elif isinstance(value, types.ModuleType):
            self.module(value, names)
        elif isinstance(value, np.ndarray):
            self.add(repr((value.dtype, value.shape)))
            self.add(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, dict):
            self.add(f"dict of {len(value)}")
            for key, item in value.items():
                self.value(key, names)
                self.value(item, names)
        elif isinstance(value, tuple | list):
            self.add(f"{type(value).__qualname__} of {len(value)}")
            for item in value:
                self.value(item, names)
        elif isinstance(value, set | frozenset):  # in an order that is the same in every process
            self.add(repr(sorted(map(repr, value))))
        elif isinstance(value, type):
            self.type(value)
        else:
            self.add(type(value).__qualname__)
            self.add(re.sub(r"0x[0-9a-fA-F]+", "", repr(value)))

    def module(self, module: types.ModuleType, names: set[str]) -> None:
        """Add a module, with only those of its members that the code may use."""
        self.add(module.__name__)
        key = (id(module), frozenset(names))
        if _opaque(module.__name__) or key in self.modules:
            return
        self.modules.add(key)
        for name in sorted(names & set(vars(module))):
            self.add(name)
            self.value(vars(module)[name], names)

    def type(self, type_: type) -> None:
        """A type by its name; an enumeration with its members, which numba compiles in."""
        self.add(f"{type_.__module__}.{type_.__qualname__}")
        if issubclass(type_, enum.Enum):
            for name, member in type_.__members__.items():
                self.add(f"{name}={member.value!r}")


def _opaque(module: str | None) -> bool:
    module = module or ""
    return module in _OPAQUE_MODULES or module.partition(".")[0] in _OPAQUE_ROOTS


def _plain_function(value: Any) -> types.FunctionType | None:
    """The Python function behind a function, a numba dispatcher or ufunc, or a kernel."""
    if isinstance(value, types.FunctionType):
        return value
    if isinstance(value, type | types.ModuleType):
        return None
    for path in (("py_func",), ("function",), ("_dispatcher", "py_func"), ("_defn",),
                 ("gufunc_builder", "py_func")):  # fmt: skip
        inner = value
        for attribute in path:
            inner = getattr(inner, attribute, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return None


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names
