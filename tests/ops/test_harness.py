"""xstream.testing itself: harness, list source, collector, clock, strategies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import xstream as xs
from xstream.engine.operator import Operator
from xstream.ops.basic import Pass
from xstream.ops.deinterleave import Deinterleave
from xstream.testing import (
    Collector,
    CutSignal,
    ManualClock,
    list_source,
    run_operator,
    segments,
    signals,
    streams,
)


def test_an_operator_with_several_outputs_gives_a_list_for_each() -> None:
    left, right = run_operator(Deinterleave(2), [xs.SigSeg(np.arange(4))])
    assert (np.asarray(left[0]) == [0, 2]).all()
    assert (np.asarray(right[0]) == [1, 3]).all()


def test_every_type_of_field_survives_a_list() -> None:
    seg = xs.SigSeg(np.arange(3), 5)
    rows = [(True, -(2**63), 0.25, seg), (False, 2**63 - 1, float("inf"), seg)]
    assert run_operator(Pass(), rows) == rows
    assert run_operator(Pass(), [True, False]) == [True, False]


def test_segments_of_the_runs_manager_are_borrowed_and_others_are_copied() -> None:
    manager = xs.memory_manager("refcount-lazy")
    own = xs.SigSeg(np.arange(4), memory=manager).append(xs.SigSeg(np.arange(2), 4, memory=manager))
    assert run_operator(Pass(), [own], memory=manager)[0].pieces == 2
    assert run_operator(Pass(), [own], memory="copy-always")[0].memory == "copy-always"


def test_a_list_says_what_it_plays_or_is_told() -> None:
    with pytest.raises(xs.SchemaError, match="an empty list has no type"):
        list_source([])
    with pytest.raises(xs.SchemaError, match="list: declared as segment of float64"):
        run_operator(Pass(), list_source([xs.SigSeg(np.zeros(2, np.int8))], xs.Segment("f8")))
    with pytest.raises(xs.GraphError, match="needs an input"):
        run_operator(Operator())


def test_a_collector_takes_the_time_from_its_clock() -> None:
    clock = ManualClock(10.0)
    seen = Collector(clock)
    q = xs.Query()
    q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out=(int, float))).map(
        lambda n, x: (clock.advance(0.5), (n, x))[1], out=(int, float)
    ).sink(seen)
    q.run()
    assert seen.items == [(1, 0.5), (2, 0.25)]
    assert seen.times == [10.5, 11.0]
    with pytest.raises(ValueError, match="can be advanced by 0 s or more"):
        clock.advance(-1.0)


@settings(max_examples=50)
@given(signals((np.float32, np.int8, np.complex64, np.dtype("i2,f4"))))
def test_a_signal_shows_its_samples_whatever_the_cuts(signal: CutSignal) -> None:
    parts = signal.segments()
    assert len(parts) == len(signal.cuts) + 1
    assert b"".join(np.asarray(seg).tobytes() for seg in parts) == signal.samples.tobytes()
    assert all(b.start == a.stop for a, b in pairwise(parts))


@settings(max_examples=25)
@given(segments((np.int16,), max_width=30), streams(max_width=30))
def test_segments_and_streams_are_what_they_say(segment: xs.SigSeg, stream: list) -> None:
    assert segment.dtype == np.int16
    assert segment.width <= 30
    assert sum(seg.width for seg in stream) <= 30
