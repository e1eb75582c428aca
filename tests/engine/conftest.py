"""One fixture runs a query in every way there is and wants the same results each time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import xstream as xs

BURSTS = (None, 1, 64)
MODES = tuple(product(xs.SCHEDULER_NAMES, xs.MANAGER_NAMES, BURSTS))

#: Declares a query and returns its sinks.
Declare = Callable[[xs.Query], Any]


def plain(result: Any) -> Any:
    """A result by value: segments as start and samples, everything else as it is."""
    if isinstance(result, xs.SigSeg):
        return (result.start, np.asarray(result).tolist())
    if isinstance(result, tuple | list):
        return type(result)(plain(item) for item in result)
    return result


def results(declare: Declare, *mode: Any, ordered: bool = True) -> list[Any]:
    """What the sinks of a query hold after a run in one mode; nothing may be left behind."""
    q = xs.Query()
    sinks = declare(q)
    run = q.run(*mode)
    found = [plain(run[sink]) for sink in sinks]
    manager = run.manager
    del run
    gc.collect(0)
    assert manager.stats().live_blocks == 0, mode
    assert manager.stats().live_segments == 0, mode
    return found if ordered else [sorted(s) if isinstance(s, list) else s for s in found]


@pytest.fixture
def same_everywhere() -> Callable[..., list[Any]]:
    """Runs a query under all schedulers, managers and bursts; gives the one result of all."""

    def check(declare: Declare, ordered: bool = True) -> list[Any]:
        first = results(declare, *MODES[0], ordered=ordered)
        for mode in MODES[1:]:
            assert results(declare, *mode, ordered=ordered) == first, mode
        return first

    return check
