"""Before a query is divided, one thread measures it: not much longer than it has to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from xstream._native import lib

import xstream as xs
from xstream.run import MEASURE_NS


class Watched:
    """The core, with a list of the budgets that it was given."""

    def __init__(self) -> None:
        self.budgets: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(lib, name)

    def xs_plan_run(self, plan: Any, budget_ns: int) -> int:
        self.budgets.append(budget_ns)
        return int(lib.xs_plan_run(plan, budget_ns))


def test_sources_that_are_late_do_not_make_measuring_long(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr("xstream.run.lib", watched)

    def slow(window: xs.SigSeg) -> xs.SigSeg:
        time.sleep(0.0005)
        return window

    q = xs.Query()
    samples = np.zeros(4800, np.float32)
    q.source(xs.io.array(samples, window=16)).map(slow).count()
    q.source(
        xs.io.array(samples, window=16)
    ).count()  # its first tuple follows a burst of the other
    run = q.run(threads=2)
    assert run.threads == 2
    assert len(watched.budgets) > 1
    assert max(watched.budgets) <= MEASURE_NS
