"""Every test that takes `manager` runs under all four, and must leave nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import xstream as xs

# A busy machine must not turn a property red.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(params=xs.MANAGER_NAMES)
def memory(request: pytest.FixtureRequest) -> str:
    """The name of each manager in turn."""
    name: str = request.param
    return name


@pytest.fixture
def manager(memory: str) -> xs.MemoryManager:
    """A fresh manager of each kind in turn."""
    return xs.memory_manager(memory)


@pytest.fixture
def lazy() -> xs.MemoryManager:
    return xs.memory_manager("refcount-lazy")


@pytest.fixture
def realloc() -> xs.MemoryManager:
    return xs.memory_manager("refcount-realloc")


@pytest.fixture(autouse=True)
def nothing_stays_alive(request: pytest.FixtureRequest) -> Iterator[None]:
    """After the test, its managers hold no segment, no block and no byte."""
    wanted = {"manager", "lazy", "realloc"} & set(request.fixturenames)
    used = [request.getfixturevalue(name) for name in wanted]
    yield
    for mm in used:
        stats = mm.stats()
        if stats.live_segments or stats.live_blocks:
            gc.collect()  # exceptions hold frames in cycles
            stats = mm.stats()
        assert (stats.live_segments, stats.live_blocks, stats.live_bytes) == (0, 0, 0), mm
