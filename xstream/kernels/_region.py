"""Regions: a chain of kernels as one function, with direct calls between them.

The function is generated as source. Stages that give at most one tuple for each tuple stand one
after another in it; the stages after a kernel that emits are a separate function, `after_N`, and
`emit` calls it. Arrays between two stages are allocated by numba; only outputs of the region become
segments. Every member keeps the frame that it would have alone, so its arguments and its state have
the same addresses. The region's own frame (xstream/kernels/kernel.h):

    words 0..7    as in a kernel's frame
    then          status, stage, ended, outside, keep, rows, count
    inputs        as in a kernel's frame
    members       the address of each member's frame, then tuples and then samples of each
    outputs       one per field; those of segments are unused
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xstream.errors import KernelError
from xstream.kernels import _cache
from xstream.kernels._adapter import CompiledKernel, compiling
from xstream.kernels._fingerprint import fingerprint
from xstream.kernels._region_source import RegionSource
from xstream.kernels.stage import Stage

__all__ = ["CompiledRegion", "compile_region"]


@dataclass(frozen=True, slots=True)
class CompiledRegion:
    """A function pointer with the layout of its frame."""

    stages: tuple[Stage, ...]
    address: int
    words: int
    members_at: int
    outputs_at: int
    #: Bytes per sample of each output field, and the input field that it passes on, or -1.
    outputs: tuple[tuple[int, int], ...]
    used: int  # input fields that are read as arrays, by bit
    walked: int  # those that are only walked
    from_cache: bool
    keep_alive: Any


@lru_cache(maxsize=256)
def compile_region(stages: tuple[Stage, ...]) -> CompiledRegion | None:
    """Compile a chain of stages for tuples of the first one's inputs.

    None if numba cannot compile them together: two kernels that pass their `out` to one jitted
    helper look like a recursion.
    """
    from xstream.kernels import _links, _pieces  # noqa: F401  numba must know them

    written = RegionSource(stages)
    key = _key(stages, written.text)
    _cache.check_code(key)
    with compiling(debug=False):
        compiled = _compile(key, written)
    if compiled is None:
        return None
    address, from_cache, keep_alive = compiled
    if not from_cache:
        _cache.write_facts(key, {"returns": []}, code=True)
    return CompiledRegion(
        stages, address, written.words, written.members_at, written.outputs_at, written.outputs,
        written.used, written.walked & ~written.used, from_cache, keep_alive,
    )  # fmt: skip


def _key(stages: tuple[Stage, ...], source: str) -> str:
    """A fingerprint of the members and of their connections."""
    digest = hashlib.sha256(source.encode())
    for stage in stages:
        if stage.code is not None:
            digest.update(fingerprint(stage.code.kernel.function, str(stage.arguments)).encode())
    return digest.hexdigest()[:32]


def _compile(key: str, written: RegionSource) -> tuple[int, bool, Any] | None:
    """The address, whether it came from disk, and what keeps it alive; None if it cannot be."""
    from numba import cfunc, types
    from numba.core import errors

    from xstream.kernels._inner import set_environments

    signature = types.void(types.int64)
    module, cacheable = _cache.load_module(key, written.text)
    try:
        try:
            _connect(module, key, written)
            with warnings.catch_warnings():  # cannot be cached, which is not an error
                warnings.filterwarnings("ignore", "Cannot cache", errors.NumbaWarning)
                compiled = cfunc(signature, cache=cacheable, error_model="numpy")(module.region)
        except (errors.NumbaError, NotImplementedError):
            raise
        except Exception:
            # Typed at a prompt, or a cache that cannot be read or written: for this process.
            _cache.forget_code(key)
            module = _cache.module_in_memory(key, written.text)
            _connect(module, key, written)
            compiled = cfunc(signature, error_model="numpy")(module.region)
    except (errors.NumbaError, NotImplementedError) as error:
        if "recursion" in str(error):
            return None
        names = ", ".join(s.code.kernel.name for s in written.stages if s.code is not None)
        raise KernelError(
            f"the kernels {names} compile alone and not together; run the query with fuse=False: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if not compiled.cache_hits:
        set_environments(compiled)
    return compiled.address, compiled.cache_hits > 0, (compiled, module)


def _dispatcher(code: CompiledKernel) -> Any:
    """The kernel's function for numba; compiled already where nothing in it depends on the region.

    A kernel that emits calls what follows, which may be the same kernel: numba would take one
    function for both for a recursion.
    """
    if code.mode != "iterate":
        return code.jitted
    from xstream.kernels._inner import inner_jit

    return inner_jit(code.kernel.function)


def _connect(module: Any, key: str, written: RegionSource) -> None:
    """Give the generated functions what they call: kernels, and each other."""
    from xstream.kernels._folded import folded_maker
    from xstream.kernels._inner import inner_jit
    from xstream.kernels._links import LinkType, link_maker

    for i, stage in enumerate(written.stages):
        if stage.code is not None:
            setattr(module, f"kernel_{i}", _dispatcher(stage.code))
        if stage.looped is not None:
            setattr(module, f"each_{i}", stage.looped.dispatcher)
    for name in written.functions:
        setattr(module, name, inner_jit(getattr(module, name)))
    for i, sample in written.folds.items():
        fill = getattr(module, f"fold_{i}")
        setattr(module, f"folded_{i}", folded_maker(key, i, sample, fill))
    for i, fields in written.links.items():
        link = LinkType(key, i, fields)
        link.after = getattr(module, f"after_{i}")
        setattr(module, f"link_{i}", link_maker(link))
