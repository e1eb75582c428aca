"""Sources that are let in together stay together, however often the core looks up meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

import xstream as xs
from xstream.run import Run
from xstream.sched import scheduler
from xstream.sigseg import memory_manager


@pytest.mark.parametrize("name", xs.SCHEDULER_NAMES)
def test_a_burst_that_is_cut_short_goes_on_where_it_stopped(name: str) -> None:
    burst = 8
    q = xs.Query()
    streams = [q.source(xs.io.array(np.zeros(4000, np.int64), window=4)) for _ in range(3)]
    outs = [stream.count() for stream in streams]
    run = Run(q, scheduler(name), memory_manager(), burst)
    run.look_up_ns = 1  # overdue at once: every burst is cut short
    apart: list[int] = []

    def look(running: Run) -> None:
        counts = [running.stats[node.name].tuples for node in q.nodes if not node.operator.ports]
        apart.append(max(counts) - min(counts))

    run.execute(progress=look)
    assert [int(run[out]) for out in outs] == [1000] * 3
    assert len(apart) > 100
    assert max(apart) <= burst
