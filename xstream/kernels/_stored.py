"""Machine code of kernels from disk, loaded without what numba needs to compile.

Numba imports and registers its whole library before it loads a cached function (`refresh`), and all
extensions with it, which takes longer than everything else that a small query does before it runs.
Machine code needs none of that, except for the symbols that it refers to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding
from numba.core.caching import Cache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys

__all__ = ["quick_loading"]

_load_overload = Cache.load_overload


@contextmanager
def quick_loading() -> Iterator[None]:
    """Have numba load cached code at once, unless the code refers to an unknown symbol."""
    with global_compiler_lock:
        try:
            Cache.load_overload = _load_quickly
            yield
        finally:
            Cache.load_overload = _load_overload


def _load_quickly(cache: Any, signature: Any, target_context: Any) -> Any:
    """As `Cache.load_overload`, without refreshing the target's registries."""
    rtsys.initialize(target_context)
    if not cache._enabled:
        return None
    data = cache._cache_file.load(cache._index_key(signature, target_context.codegen()))
    if data is None:
        return None
    if not _is_complete(data[0]):
        target_context.refresh()
    return cache._impl.rebuild(target_context, data)


def _is_complete(library: Any) -> bool:
    """Whether this process has every symbol of a library that was stored as object code.

    LLVM ends the process at a symbol that it does not find.
    """
    _, kind, contents = library
    if kind != "object":
        return False
    module = binding.parse_bitcode(contents[1])
    return all(
        binding.address_of_symbol(function.name) is not None
        for function in module.functions
        if function.is_declaration and not function.name.startswith("llvm.")
    )
