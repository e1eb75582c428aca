"""Every operator test runs under all four schedulers, all four managers, with and without rate
control, and once in debug mode, where every index and division is checked; results must be the same
everywhere, and nothing may stay alive."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import xstream as xs
from xstream.engine.operator import Operator
from xstream.testing import run_operator

EVERYWHERE = [
    *product(xs.SCHEDULER_NAMES, xs.MANAGER_NAMES, (64, None), (False,)),
    ("df", "refcount-lazy", 64, True),  # in debug mode
]


def shown(value: Any) -> Any:
    """A result by value: segments as (start, bytes, dtype), which compare exactly."""
    if isinstance(value, xs.SigSeg):
        return Placed(value)
    if isinstance(value, float):
        return np.float64(value).tobytes()  # NaN equals itself
    if isinstance(value, tuple | list):
        return type(value)(shown(item) for item in value)
    return value


class Placed:
    """Samples in their place, copied out of the engine."""

    def __init__(self, seg: xs.SigSeg) -> None:
        chunks = [chunk.copy() for chunk in seg.chunks()]
        self.samples = np.concatenate(chunks) if chunks else np.empty(0, seg.dtype)
        self.start, self.timebase = seg.start, seg.timebase

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placed) and (
            self.start == other.start
            and self.timebase == other.timebase
            and self.samples.dtype == other.samples.dtype
            and self.samples.tobytes() == other.samples.tobytes()
        )

    def __repr__(self) -> str:
        return f"Placed({self.start}, {self.samples!r})"


def plain(value: Any) -> Any:
    """A result with segments copied out as Placed."""
    if isinstance(value, xs.SigSeg):
        return Placed(value)
    if isinstance(value, tuple | list):
        return type(value)(plain(item) for item in value)
    return value


def assert_nothing_lives(manager: xs.MemoryManager) -> None:
    if manager.stats().live_segments:
        gc.collect()  # an exception may hold its frames in a cycle
    stats = manager.stats()
    assert (stats.live_segments, stats.live_blocks) == (0, 0), manager


RunEverywhere = Callable[..., Any]


@pytest.fixture(scope="session")
def everywhere() -> RunEverywhere:
    """Runs an operator on its inputs in every mode, and returns what came out, copied out.

    `ordered=False`: the order of the tuples may differ, as that of independent branches does.
    """

    def run(operator: Operator, *inputs: Any, ordered: bool = True) -> Any:
        first: Any = None
        expected: Any = None
        for scheduler, memory, burst, debug in EVERYWHERE:
            manager = xs.memory_manager(memory)
            mode = {"scheduler": scheduler, "memory": manager, "tuple_burst": burst, "debug": debug}
            results = run_operator(operator, *inputs, **mode)
            outcome = shown(results)
            if not ordered:
                outcome = sorted(outcome, key=repr)
            if first is None:
                first, expected = plain(results), outcome
            assert outcome == expected, (scheduler, memory, burst, debug)
            del results
            assert_nothing_lives(manager)
        return first

    return run


@pytest.fixture(scope="session")
def fails_everywhere() -> Callable[..., str]:
    """Runs an operator that must fail in every mode with the same words, leaving nothing behind."""

    def run(operator: Operator, *inputs: Any) -> str:
        messages = set()
        for scheduler, memory, burst, debug in EVERYWHERE:
            manager = xs.memory_manager(memory)
            mode = {"scheduler": scheduler, "memory": manager, "tuple_burst": burst, "debug": debug}
            with pytest.raises(xs.OperatorError) as raised:
                run_operator(operator, *inputs, **mode)
            messages.add(str(raised.value).replace(memory, "MEMORY"))
            del raised
            assert_nothing_lives(manager)
        assert len({message.split(", tuple ")[0] for message in messages}) == 1, messages
        return str(min(messages))

    return run
