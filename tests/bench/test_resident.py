"""The peak of resident memory: what was allocated and touched, and nothing from before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xstream.bench import _resident
from xstream.bench._resident import ResidentPeak

MEGABYTES = 2**20


def test_memory_that_is_freed_again_counts_and_memory_from_before_does_not() -> None:
    before = np.ones(100 * MEGABYTES, np.int8)
    del before
    peak = ResidentPeak()
    assert peak.grown() < 10 * MEGABYTES
    ballast = np.ones(60 * MEGABYTES, np.int8)
    del ballast
    assert 55 * MEGABYTES < peak.grown() < 75 * MEGABYTES


def test_a_system_that_does_not_tell_gives_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_resident, "_STATUS", Path("/nowhere/status"))
    monkeypatch.setattr(_resident, "_CLEAR", Path("/nowhere/clear_refs"))
    assert ResidentPeak().grown() == 0
