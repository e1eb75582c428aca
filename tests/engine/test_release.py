"""A run is freed with all its memory, even where the user's code leads back to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xstream as xs
from xstream.engine.schema import schema
from xstream.kernels.apply import PythonApply

SAMPLES = np.arange(4096.0)


class Owner:
    """The user's object: its methods are the operators, and it keeps the run."""

    def __init__(self) -> None:
        self.run: xs.Run | None = None
        self.kept: list[Any] = []
        self.reports: list[str] = []

    def width(self, seg: xs.SigSeg) -> int:
        return seg.width

    def wide(self, seg: xs.SigSeg) -> bool:
        self.kept = [seg]
        return True

    def halves(self, seg: xs.SigSeg) -> Iterator[xs.SigSeg]:
        yield seg[: seg.width // 2]

    def take(self, seg: xs.SigSeg) -> None:
        self.kept.append(seg)

    def total(self) -> list[xs.SigSeg]:
        return self.kept[:1]

    def segments(self) -> Iterator[xs.SigSeg]:
        for start in range(0, 8, 2):
            yield xs.SigSeg(SAMPLES[:2], start=start)

    def __iter__(self) -> Iterator[xs.SigSeg]:
        return self.segments()

    def watch(self, run: xs.Run) -> None:
        self.run = run
        self.reports.append(repr(run))

    def fail(self, seg: xs.SigSeg) -> int:
        self.kept = [seg]
        raise ValueError("on purpose")


def array_source(q: xs.Query) -> Any:
    return q.source(xs.io.array(SAMPLES, window=64))


def reduced(q: xs.Query, owner: Owner) -> Any:
    reducer = PythonApply("iterate", "total", function=owner.take, finish=owner.total)
    return array_source(q).then(reducer).collect()


SEGMENTS = schema(xs.Segment(np.float64))
DECLARED: dict[str, Callable[[xs.Query, Owner], Any]] = {
    "map": lambda q, owner: array_source(q).map(owner.width, out=int).collect(),
    "map with arguments": lambda q, owner: array_source(q).map(
        lambda seg, me: me.width(seg), owner, out=int
    ).collect(),
    "filter": lambda q, owner: array_source(q).filter(owner.wide).collect(),
    "iterate": lambda q, owner: array_source(q).iterate(owner.halves).collect(),
    "sink": lambda q, owner: array_source(q).sink(owner.take),
    "reducer": reduced,
    "source": lambda q, owner: q.source(xs.io.iterable(owner, SEGMENTS)).collect(),
    "source function": lambda q, owner: q.source(
        xs.io.iterable(owner.segments, SEGMENTS)
    ).collect(),
    "source generator": lambda q, owner: q.source(
        xs.io.iterable(owner.segments(), SEGMENTS)
    ).collect(),
    "progress": lambda q, owner: array_source(q).collect(),
}  # fmt: skip


@pytest.mark.parametrize("what", DECLARED)
def test_a_run_that_its_own_operator_keeps_is_collected(what: str) -> None:
    owner, q = Owner(), xs.Query()
    out = DECLARED[what](q, owner)
    run = q.run(progress=owner.watch)
    owner.run = run
    results = run[out]
    manager, alive = run.manager, [weakref.ref(owner), weakref.ref(run), weakref.ref(q)]
    del owner, q, run, out
    gc.collect()
    assert [reference() for reference in alive] == [None] * 3
    if results is not None:  # what was read before stays readable
        assert all(not isinstance(item, xs.SigSeg) or len(np.asarray(item)) for item in results)
    del results
    gc.collect()
    assert manager.stats().live_blocks == 0
    assert manager.stats().live_segments == 0


@pytest.mark.parametrize("progress", [True, False])
def test_a_failed_run_is_collected_too(progress: bool) -> None:
    owner, q = Owner(), xs.Query()
    array_source(q).map(owner.fail, out=int).count()
    manager = xs.memory_manager("refcount-lazy")
    with pytest.raises(xs.OperatorError) as caught:
        q.run(memory=manager, progress=owner.watch if progress else False)
    alive = weakref.ref(owner)
    del owner, q, caught
    gc.collect()
    assert alive() is None
    assert manager.stats().live_blocks == 0


def test_a_run_that_nothing_leads_back_to_is_freed_at_once() -> None:
    q = xs.Query()
    array_source(q).map(lambda seg: seg.width, out=int).collect()
    gc.collect()
    gc.disable()
    try:
        run = q.run()
        manager, alive = run.manager, weakref.ref(run)
        assert manager.stats().live_blocks > 0
        del run
        assert alive() is None
        assert manager.stats().live_blocks == 0
    finally:
        gc.enable()


def test_a_run_says_whether_it_runs_or_how_it_ended() -> None:
    owner, q = Owner(), xs.Query("mine")
    array_source(q).count()
    run = q.run(progress=owner.watch)
    assert owner.reports[0].startswith("<Run of mine: running, ")
    assert repr(run).startswith("<Run of mine: done, 4,096 samples ")
    failing = xs.Query()
    array_source(failing).map(owner.fail, out=int).count()
    with pytest.raises(xs.OperatorError):
        failing.run(progress=owner.watch)
    assert "running" in owner.reports[-1]
    assert "failed" in repr(owner.run)
