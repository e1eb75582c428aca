"""Every query gives the same results under every scheduler, manager and burst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xstream as xs
from tests.engine import kernels

Everywhere = Callable[..., list[Any]]
SAMPLES = np.random.default_rng(3).normal(size=701).astype(np.float32)


def source(q: xs.Query, **options: Any) -> Any:
    return q.source(xs.io.array(SAMPLES, rate_hz=100.0, window=16, repeat=2, **options))


def test_a_plain_chain(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        return [source(q).passed().filter(kernels.louder, 0.9).map(kernels.doubled).collect()]

    (found,) = same_everywhere(declare)
    windows = np.concatenate([SAMPLES, SAMPLES])
    expected = [
        (start, (2 * window).tolist())
        for start in range(0, len(windows), 16)
        if np.std(window := windows[start : start + 16]) > 0.9
    ]
    assert found == expected
    assert 0 < len(found) < 88


def test_fan_out_and_merge(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        src = source(q)
        loud, all_ = src.filter(kernels.louder, 0.9), src.passed()
        merged = loud.merge(all_, src.map(kernels.doubled))
        return [loud.collect(), all_.count(), merged.collect()]

    loud, count = same_everywhere(lambda q: declare(q)[:2])
    (merged,) = same_everywhere(lambda q: declare(q)[2:], ordered=False)
    assert count == 88
    assert len(merged) == len(loud) + 2 * 88


def test_each_branch_of_a_merge_keeps_its_order(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        first = q.source(xs.io.samples(np.arange(100.0))).map(_swap, out=(float, int))
        second = q.source(xs.io.samples(-1.0 - np.arange(150.0))).map(_swap, out=(float, int))
        merged = first.merge(second)
        return [
            merged.filter(kernels.above, -0.5).collect(),
            merged.filter(kernels.below, -0.5).collect(),
        ]

    up, down = same_everywhere(declare)
    assert up == [(float(i), i) for i in range(100)]
    assert down == [(-1.0 - i, i) for i in range(150)]


def _swap(index: int, value: float) -> tuple[float, int]:
    return value, index


def test_tuples_of_several_fields(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        told = source(q).map(kernels.mean_and_ends)
        shown = told.map(
            lambda mean, n, first, last: (n, last, first, mean > 0),
            out=(int, told.schema.types[3], told.schema.types[2], bool),
        )
        return [told.collect(), shown.collect()]

    told, shown = same_everywhere(declare)
    assert len(told) == len(shown) == 88
    assert [n for _, n, _, _ in told] == [16] * 87 + [10]
    assert [(n, last, first, mean > 0) for mean, n, first, last in told] == shown


def test_scalars_only(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        src = q.source(xs.io.samples(SAMPLES, repeat=2))
        emitted = src.iterate(kernels.twice_or_not)
        return [emitted.collect(), emitted.filter(lambda i, x: i % 2 == 0).count()]

    emitted, even = same_everywhere(declare)
    expected = []
    for index, value in enumerate(np.concatenate([SAMPLES, SAMPLES]).tolist()):
        expected += [[], [(index, value)], [(index, value), (index, -value)]][index % 3]
    assert emitted == expected
    assert even == sum(index % 2 == 0 for index, _ in expected)


def test_state_that_grows(same_everywhere: Everywhere) -> None:
    (told,) = same_everywhere(lambda q: [source(q).iterate(kernels.remember_and_tell).collect()])
    firsts = np.concatenate([SAMPLES, SAMPLES])[::16].astype(np.float64)
    assert [n for n, _ in told] == list(range(3, 89, 3))
    for n, (_, kept) in told:
        assert kept == firsts[:n].tolist()


def test_a_cycle_that_a_filter_ends(same_everywhere: Everywhere) -> None:
    levels = [8.0, 100.0, 0.25, 3.0, 1e9]

    def declare(q: xs.Query) -> Any:
        start = q.source(xs.io.iterable([(level, 0) for level in levels], out=(float, int)))
        back = q.feedback((float, int))
        merged = start.merge(back)
        again = merged.filter(kernels.above, 1.0).map(kernels.halve)
        q.connect(back, again)
        return [merged.filter(kernels.below, 1.0).collect(), merged.count()]

    done, passed = same_everywhere(declare, ordered=False)
    expected = []
    for level in levels:
        hops = 0
        while level > 1.0:
            level, hops = level / 2, hops + 1
        expected.append((level, hops))
    assert done == sorted(expected)
    assert passed == sum(hops + 1 for _, hops in expected)


def test_two_cycles_through_one_operator(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        start = q.source(xs.io.iterable([(float(2**k), 0) for k in range(1, 9)], out=(float, int)))
        left, right = q.feedback((float, int)), q.feedback((float, int))
        merged = start.merge(left, right)
        halved = merged.filter(kernels.above, 1.0).map(kernels.halve)
        q.connect(left, halved.filter(lambda level, hops: hops % 2 == 0))
        q.connect(right, halved.filter(lambda level, hops: hops % 2 == 1))
        return [merged.filter(kernels.below, 1.0).collect()]

    (found,) = same_everywhere(declare, ordered=False)
    assert found == [(1.0, k) for k in range(1, 9)]


def test_an_empty_stream_one_sample_and_nulls(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        empty = q.source(xs.io.array(np.empty(0, np.float32)))
        one = q.source(xs.io.array(np.ones(1, np.float32)))
        nulls = q.source(
            xs.io.iterable(lambda: [xs.SigSeg.null(dtype="f4")] * 5, out=xs.Segment("f4"))
        )
        sinks = []
        for stream in (empty, one, nulls):
            sinks += [
                stream.map(kernels.doubled).collect(),
                stream.filter(kernels.keep_all).count(),
            ]
        return sinks

    found = same_everywhere(declare)
    assert found == [[], 0, [(0, [2.0])], 1, [(0, [])] * 5, 5]


def test_a_window_larger_than_the_recording(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        src = q.source(xs.io.array(np.arange(5.0), window=12, repeat=7))
        return [src.collect(), src.map(kernels.doubled).collect()]

    windows, doubled = same_everywhere(declare)
    whole = np.tile(np.arange(5.0), 7)
    assert windows == [(i, whole[i : i + 12].tolist()) for i in range(0, 35, 12)]
    assert doubled == [(i, (2 * whole[i : i + 12]).tolist()) for i in range(0, 35, 12)]


def test_a_chain_of_hundreds_of_operators_of_every_kind(same_everywhere: Everywhere) -> None:
    def declare(q: xs.Query) -> Any:
        stream = source(q)
        for i in range(40):
            stream = stream.passed().filter(kernels.keep_all)
            if i % 10 == 5:
                stream = stream.map(lambda seg: seg)
        return [stream.collect()]

    (found,) = same_everywhere(declare)
    whole = np.concatenate([SAMPLES, SAMPLES])
    assert found == [(i, whole[i : i + 16].tolist()) for i in range(0, len(whole), 16)]
