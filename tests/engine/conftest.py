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
#: Several threads need df; the others run on one whatever they are asked for.
THREADED = (
    *product(("df",), xs.MANAGER_NAMES, BURSTS, (2, 3)),
    *product(("fifo", "fifo-slice", "rtc"), ("refcount-lazy",), (64,), (2,)),
)

#: Declares a query and returns its sinks.
Declare = Callable[[xs.Query], Any]


def plain(result: Any) -> Any:
    """A result by value: segments as start and samples, everything else as it is."""
    if isinstance(result, xs.SigSeg):
        return (result.start, np.asarray(result).tolist())
    if isinstance(result, tuple | list):
        return type(result)(plain(item) for item in result)
    return result


@pytest.fixture
def cut_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads from the first tuple on, and as many as are asked for."""
    monkeypatch.setattr("xstream.run.MEASURE_NS", 0)
    monkeypatch.setattr("xstream.sched.threads.usable_cores", lambda: 64)


def results(
    declare: Declare,
    *mode: Any,
    ordered: bool = True,
    threads: int = 1,
    profile: bool = False,
    fuse: bool = True,
) -> list[Any]:
    """What the sinks of a query hold after a run in one mode; nothing may be left behind."""
    q = xs.Query()
    sinks = declare(q)
    run = q.run(*mode, threads=threads, profile=profile, fuse=fuse)
    found = [plain(run[sink]) for sink in sinks]
    manager = run.manager
    del run
    gc.collect(0)
    assert manager.stats().live_blocks == 0, mode
    assert manager.stats().live_segments == 0, mode
    return found if ordered else [sorted(s) if isinstance(s, list) else s for s in found]


@pytest.fixture
def same_everywhere(cut_at_once: None) -> Callable[..., list[Any]]:
    """Runs a query under all schedulers, managers, bursts and threads; gives the one result.

    Where merged streams are compared as sets, several threads still give the order of one.
    """

    def check(declare: Declare, ordered: bool = True) -> list[Any]:
        first = results(declare, *MODES[0], ordered=ordered)
        for mode in MODES[1:]:
            assert results(declare, *mode, ordered=ordered) == first, mode
        alone = {mode: results(declare, *mode) for mode in MODES if mode[0] == "df"}
        for scheduler, *rest, threads in THREADED:
            mode = (scheduler, *rest)
            exact = ordered or scheduler == "df"
            found = results(declare, *mode, ordered=exact, threads=threads)
            assert found == (alone[mode] if scheduler == "df" else first), (mode, threads)
        return first

    return check
