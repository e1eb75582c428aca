"""Machine code of kernels from disk, loaded without what numba needs to compile.

Numba imports and registers its whole library before it loads a cached function (`refresh`), and all
extensions with it, which takes longer than everything else that a small query does before it runs.
Machine code needs none of that, except for the symbols that it refers to. Its environments name the
modules of numba that its functions are from, one of which imports the linear algebra of SciPy; only
code in object mode reads their globals, and no kernel is in object mode.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba.core.caching import Cache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime.nrt import rtsys

__all__ = ["quick_loading"]

_load_overload, _load_data = Cache.load_overload, IndexDataCacheFile._load_data
_parse_bitcode = binding.parse_bitcode


@contextmanager
def quick_loading() -> Iterator[None]:
    """Have numba load cached code at once, unless the code refers to an unknown symbol."""
    with global_compiler_lock:
        try:
            Cache.load_overload = _load_quickly
            IndexDataCacheFile._load_data = _load_data_quickly
            yield
        finally:
            Cache.load_overload = _load_overload
            IndexDataCacheFile._load_data = _load_data


def _load_quickly(cache: Any, signature: Any, target_context: Any) -> Any:
    """As `Cache.load_overload`, without refreshing the target's registries."""
    rtsys.initialize(target_context)
    if not cache._enabled:
        return None
    data = cache._cache_file.load(cache._index_key(signature, target_context.codegen()))
    if data is None:
        return None
    _, kind, contents = data[0]
    if kind != "object":
        target_context.refresh()
        return cache._impl.rebuild(target_context, data)
    module = _parse_bitcode(contents[1])
    if not _is_complete(module):
        target_context.refresh()
    with _parsed(contents[1], module):
        return cache._impl.rebuild(target_context, data)


def _is_complete(module: Any) -> bool:
    """Whether this process has every symbol that a module declares.

    LLVM ends the process at a symbol that it does not find.
    """
    return all(
        binding.address_of_symbol(function.name) is not None
        for function in module.functions
        if function.is_declaration and not function.name.startswith("llvm.")
    )


@contextmanager
def _parsed(bitcode: bytes, module: Any) -> Iterator[None]:
    """Have numba use a module that was parsed already, which takes as long as all the rest."""

    def parse(given: bytes, context: Any = None) -> Any:
        return module if given is bitcode else _parse_bitcode(given, context)

    try:
        binding.parse_bitcode = parse
        yield
    finally:
        binding.parse_bitcode = _parse_bitcode


class _Unpickler(pickle.Unpickler):
    """Reads stored code without importing the modules of numba that its functions are from."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file stands for."""
        found = super().find_class(module, name)
        return _environment if found is _rebuild_env else found


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """As `_rebuild_env`; a module of numba that nobody has imported is only named."""
    known = lookup_environment(name)
    if known is not None or module in sys.modules or not module.startswith("numba."):
        return _rebuild_env(module, constants, name)
    environment = Environment({"__name__": module})
    environment.consts[:] = constants
    environment.env_name = name
    Environment._memo[name] = environment
    return environment


def _load_data_quickly(file: Any, name: str) -> Any:
    """As `IndexDataCacheFile._load_data`."""
    return _Unpickler(BytesIO(Path(file._data_path(name)).read_bytes())).load()
