"""`Stage`: one operator of a region, with everything that the region's code depends on."""

from __future__ import annotations

import dis
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise

from xstream._native import lib
from xstream.engine.schema import Schema, Segment
from xstream.kernels._adapter import CompiledKernel
from xstream.kernels._arguments import ArgumentType
from xstream.kernels._each import EachFunction

__all__ = ["Stage", "plain_stage"]


@dataclass(frozen=True, eq=False)
class Stage:
    """What an operator does to a tuple inside a region.

    `kind` is kernel, pass, select (`chosen` are the fields) or count. Stages that are equal are
    the same object, so that chains of them can be looked up.
    """

    kind: str
    inputs: Schema
    code: CompiledKernel | None = None
    arguments: tuple[ArgumentType, ...] = ()
    each: EachFunction | None = field(default=None, repr=False)
    chosen: tuple[int, ...] = ()

    @cached_property
    def looped(self) -> EachFunction | None:
        """Its function of one sample, where its loop can be joined to its neighbours'.

        A loop with state stays alone: where it fails, the tuple could not be run again.
        """
        each = self.each
        joinable = each is not None and self.code is not None and self.code.mode == "map"
        if not joinable or each is None or each.kernel.states or not any(each.sampled):
            return None
        return each

    @cached_property
    def stateless(self) -> bool:
        """Whether what it does to a tuple depends on that tuple alone."""
        code = self.code
        if code is None:
            return True
        running = any(rule.start_rule == lib.XS_START_RUNNING for rule in code.rules)
        return not (code.kernel.states or code.kernel.at_end or running)

    @cached_property
    def shares_out(self) -> bool:
        """Whether its kernel gives `out` to another function instead of emitting itself.

        Numba compiles such a helper while it compiles what follows the emit, and takes a second
        use of it in there for a recursion.
        """
        if self.code is None or self.code.mode != "iterate":
            return False
        code = list(dis.get_instructions(self.code.kernel.function))
        return any(
            now.opname.startswith("LOAD_FAST")
            and "out" in (now.argval if isinstance(now.argval, tuple) else (now.argval,))
            and following.opname not in ("LOAD_ATTR", "LOAD_METHOD")
            for now, following in pairwise(code)
        )

    @property
    def itemsizes(self) -> tuple[int, ...]:
        """Bytes per sample of each input field; 0 for a scalar."""
        return tuple(
            type_.dtype.itemsize if isinstance(type_, Segment) else 0 for type_ in self.inputs.types
        )


@lru_cache(maxsize=256)
def plain_stage(kind: str, inputs: Schema, chosen: tuple[int, ...] = ()) -> Stage:
    """The stage of an operator that is not a kernel."""
    return Stage(kind, inputs, chosen=chosen)
