"""Jitted functions that only other compiled code calls.

Numba optimises every function on its own and generates machine code for it. A kernel is linked into
its adapter or its region, where LLVM optimises it once more, together with what surrounds it, and
generates the code that runs. For kernels the first optimisation is therefore skipped: it would
take as long as the rest of the compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite.binding import Linkage
from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.imputils import builtin_registry
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import _TemplateTargetHelperMixin

import xstream.kernels._registries  # noqa: F401  guards numba against interrupts

__all__ = ["INNER", "inner_jit", "quick_typing", "set_environments", "whole_program"]

_ENVIRONMENT = "_ZN08NumbaEnv"


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function as it is before optimisation, for linking into others."""

    def _optimize_final_module(self) -> None:
        """Left to the library that it is linked into."""

    def _finalize_final_module(self) -> None:
        """Skip LLVM's execution engine, which would generate machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):  # type: ignore[misc]
    """Lowering that ends with the code for LLVM."""

    _name = "xstream_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.library = _InnerLibrary(context.codegen(), state.func_id.func_qualname)
        super().run_pass(state)
        # Numba finds the function by this when it compiles a call of it; it must be a builtin.
        entry = object().__reduce__
        context.insert_user_function(entry, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return True


class _InnerCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler without the last steps."""

    def define_pipelines(self) -> list[Any]:
        self.state.flags.no_compile = True
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_InnerLowering, why) if which is NativeLowering else (which, why)
            for which, why in passes.passes
        ]
        passes._finalized = False
        passes.finalize()
        return [passes]


#: Options of numba for such functions.
INNER = {
    "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InnerCompiler,
}  # fmt: skip


def inner_jit(function: Callable[..., Any], error_model: str = "numpy") -> Any:
    """Compile a function for calls from compiled code."""
    return njit(function, error_model=error_model, **INNER)


def _optimize_together(library: Any) -> None:
    """Make the functions that are linked into a callback its own, then optimise.

    Numba leaves them visible to other libraries. LLVM inlines a large function only if nobody else
    can call it, and a kernel that is not inlined gets every array as seven arguments.
    """
    functions = [one for one in library._final_module.functions if not one.is_declaration]
    if any(function.name.startswith("cfunc.") for function in functions):
        for function in functions:
            if function.linkage == Linkage.linkonce_odr and not function.name.startswith("NRT_"):
                function.linkage = Linkage.internal
    _optimize(library)


_optimize = JITCodeLibrary._optimize_final_module


@contextmanager
def whole_program() -> Iterator[None]:
    """Have LLVM optimise a callback and all functions that are linked into it as one program."""
    with global_compiler_lock:
        try:
            JITCodeLibrary._optimize_final_module = _optimize_together
            yield
        finally:
            JITCodeLibrary._optimize_final_module = _optimize


@contextmanager
def quick_typing() -> Iterator[None]:
    """Have numba look for new declarations once per function, not at each use of an intrinsic.

    It does the latter in case another target than the processor was used in between. A region uses
    hundreds of intrinsics. Numba compiles in one thread at a time; other threads wait.
    """
    with global_compiler_lock:
        before = _TemplateTargetHelperMixin._get_target_registry
        try:
            _TemplateTargetHelperMixin._get_target_registry = lambda *_: builtin_registry
            yield
        finally:
            _TemplateTargetHelperMixin._get_target_registry = before


def set_environments(compiled: Any) -> None:
    """Give a new compiled callback the objects that the functions linked into it refer to."""
    library = compiled._library
    for variable in library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                library.codegen.set_env(variable.name, environment)
