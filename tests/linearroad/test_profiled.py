"""The query of `xstream profile linearroad`."""

from __future__ import annotations

import numpy as np
import pytest
from linearroad.profiled import SECONDS, declare
from linearroad.tables.batches import PERIOD

import xstream as xs

VEHICLES = 900


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_every_vehicle_reports_every_30_seconds_and_is_notified(memory):
    query = xs.Query()
    declare(query, VEHICLES, 2)
    run = query.run(memory=memory)
    reports = 2 * SECONDS // PERIOD * VEHICLES
    assert run.stats["vehicles"].samples == reports
    # A vehicle needs 80 s for a segment: three segments in 240 s, the first one included.
    assert run.stats["sink"].samples == pytest.approx(3.8 * VEHICLES, rel=0.1)
    assert [run.stats[name].samples for name in ("count", "count 2")] == [0, 0]  # rejects


def test_what_passing_costs_is_seen_under_copy_always_only():
    copied = {}
    for memory in xs.MANAGER_NAMES:
        query = xs.Query()
        declare(query, VEHICLES, 1)
        copied[memory] = query.run(memory=memory).memory.bytes_copied
    assert copied["copy-always"] > 0
    assert np.all([copied[name] < copied["copy-always"] / 10 for name in xs.MANAGER_NAMES[1:]])
