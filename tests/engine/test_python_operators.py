"""Plain Python operators: what they get, what they may return, and what happens when they fail."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest

import xstream as xs

SAMPLES = np.arange(20, dtype=np.float32)


def source(q: xs.Query) -> Any:
    return q.source(xs.io.array(SAMPLES, rate_hz=10.0, window=4))


def failure(declare: Any, **options: Any) -> xs.OperatorError:
    q = xs.Query()
    declare(source(q)).count()
    with pytest.raises(xs.OperatorError) as caught:
        q.run(**options)
    return caught.value


def test_map_filter_iterate_and_sink_side_by_side() -> None:
    q = xs.Query()
    src = source(q)
    seen: list[int] = []
    widths = src.map(lambda seg: seg.width, out=int).collect()
    late = src.filter(lambda seg: seg.start > 8).collect()
    lists = src.iterate(lambda seg: [seg.start] * (seg.start // 4), out=int).collect()

    def halves(seg: xs.SigSeg) -> Any:
        yield seg[:2]
        yield seg[2:]

    generated = src.iterate(halves).collect()
    none = src.iterate(lambda seg: None).collect()
    sink = src.sink(lambda seg: seen.append(seg.start))
    run = q.run()
    assert run[widths] == [4] * 5
    assert [seg.start for seg in run[late]] == [12, 16]
    assert run[lists] == [4, 8, 8, 12, 12, 12, 16, 16, 16, 16]
    assert [seg.start for seg in run[generated]] == list(range(0, 20, 2))
    assert run[none] == []
    assert run[sink] is None
    assert seen == [0, 4, 8, 12, 16]


def test_arguments_follow_the_fields() -> None:
    q = xs.Query()
    out = source(q).map(lambda seg, a, b: seg.start * a + b, 2, 1, out=int).collect()
    assert q.run()[out] == [1, 9, 17, 25, 33]


def test_numbers_of_every_kind_become_what_the_field_is() -> None:
    class Pair(NamedTuple):
        a: float
        b: int

    q = xs.Query()
    src = q.source(xs.io.iterable(range(1), out=int))
    outs = [
        src.map(lambda i, value=value: value, out=out).collect()
        for value, out in [
            (np.float32(0.5), float), (np.int16(3), float), (True, float), (3, float),
            (np.int64(-7), int), (np.uint8(7), int), (np.bool_(True), bool), (2**63 - 1, int),
            (-(2**63), int), (np.True_, int), (Pair(1.0, 2), (float, int)),
            ((1,), (int,)), (1, (int,)), ((np.float32(0.5),), float), ((True,), {"a": bool}),
            (0.1, np.float32), (np.float64(0.1), "f4"), (1e300, np.float32), (3, np.float32),
            (-128, np.int8), (np.int64(255), np.uint8), (2**32 - 1, (np.uint32,)),
        ]
    ]  # fmt: skip
    run = q.run()
    assert [run[out][0] for out in outs] == [
        0.5, 3.0, 1.0, 3.0, -7, 7, True, 2**63 - 1, -(2**63), 1, (1.0, 2),
        1, 1, 0.5, True,
        float(np.float32(0.1)), float(np.float32(0.1)), float("inf"), 3.0,
        -128, 255, 2**32 - 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "out", "said"),
    [
        ("loud", float, "field 'value' is float64, not 'loud'"),
        (None, int, "field 'value' is int64, not None"),
        (1.5, int, "field 'value' is int64, not 1.5"),
        (2**63, int, "field 'value' is int64, not 9223372036854775808"),
        (1j, float, "field 'value' is float64, not 1j"),
        (np.zeros(3), float, "field 'value' is float64, not array"),
        (1, (int, int), "a tuple of 2 fields is wanted, not 1"),
        ([1, 2], (int, int), "a tuple of 2 fields is wanted, not [1, 2]"),
        ((1, 2, 3), (int, int), "a tuple of 2 fields is wanted, not (1, 2, 3)"),
        ((1, "x"), {"a": int, "b": float}, "field 'b' is float64, not 'x'"),
        ((1, 2), (int,), "a tuple of 1 field is wanted, not (1, 2)"),
        ((), (int,), "a tuple of 1 field is wanted, not ()"),
        (128, np.int8, "field 'value' is int8, not 128"),
        (np.int64(-1), np.uint8, "field 'value' is uint8, not np.int64(-1)"),
        ("x", np.float32, "field 'value' is float32, not 'x'"),
        (0.5, np.int8, "field 'value' is int8, not 0.5"),
        (np.zeros(1, "f4"), xs.Segment("f4"), "wrap it in a SigSeg, as in xs.SigSeg(samples"),
        ([1.0], xs.Segment("f4"), "not [1.0]: wrap it in a SigSeg"),
        ((1, np.zeros(9)), (int, xs.Segment("f4")), "wrap it in a SigSeg"),
        (xs.SigSeg(np.zeros(1)), float, "declare what the function returns with out="),
        (3, xs.Segment("f4"), "field 'value' is segment of float32 by index, not 3"),
        (xs.SigSeg(np.zeros(1)), xs.Segment("f4"), "is segment of float32 by index, not <SigSeg"),
        (
            xs.SigSeg(np.zeros(1, "f4"), timebase=xs.Timebase(rate_hz=2.0)),
            xs.Segment("f4", xs.Timebase(rate_hz=3.0)),
            "is segment of float32 at 3 Hz, not <SigSeg 1 samples [0, 1) float32 at 2 Hz",
        ),
    ],
)
def test_wrong_values_are_named_with_field_and_type(value: Any, out: Any, said: str) -> None:
    for declare in (
        lambda src: src.map(lambda seg: value, out=out),
        lambda src: src.iterate(lambda seg: [value], out=out),
    ):
        error = failure(declare)
        assert isinstance(error.__cause__, xs.SchemaError)
        assert said in str(error), str(error)
        assert "port 'in', tuple (<SigSeg 4 samples [0, 4) float32 at 10 Hz" in str(error)


def test_a_bad_value_among_good_ones_leaves_no_count_behind() -> None:
    manager = xs.memory_manager("refcount-lazy")
    error = failure(
        lambda src: src.iterate(
            lambda seg: [(seg, 1), (seg, "x")], out=(xs.Segment("f4", xs.Timebase(10.0)), int)
        ),
        memory=manager,
    )
    assert isinstance(error.__cause__, xs.SchemaError)
    del error
    gc.collect()
    assert manager.stats().live_segments == 0


def test_an_exception_is_named_with_operator_port_and_tuple() -> None:
    def careful(seg: xs.SigSeg) -> bool:
        if seg.start == 8:
            raise LookupError("no such thing")
        return True

    error = failure(lambda src: src.filter(careful))
    assert str(error).startswith("filter(careful), port 'in', tuple (<SigSeg 4 samples [8, 12)")
    assert str(error).endswith("LookupError: no such thing")
    assert isinstance(error.__cause__, LookupError)
    assert error.__cause__.__traceback__ is not None

    def generator(seg: xs.SigSeg) -> Any:
        yield seg
        raise StopIteration  # which Python makes a RuntimeError

    assert isinstance(failure(lambda src: src.iterate(generator)).__cause__, RuntimeError)
    assert "iterable of tuples, or None, not 5" in str(
        failure(lambda src: src.iterate(lambda seg: 5))
    )
    assert isinstance(failure(lambda src: src.map(lambda: 1)).__cause__, TypeError)


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
@pytest.mark.parametrize("burst", [None, 64])
def test_a_failure_while_tuples_wait_leaves_nothing_behind(
    scheduler: str, burst: int | None
) -> None:
    manager = xs.memory_manager("copy-always")
    q = xs.Query()
    stream = source(q).passed().map(lambda seg: seg).passed()
    back = q.feedback(stream.schema)
    q.connect(back, stream.merge(back).filter(lambda seg: 1 // (12 - seg.start) or True))
    stream.collect()
    with pytest.raises(xs.OperatorError, match="ZeroDivisionError") as caught:
        q.run(scheduler, manager, burst)
    del caught
    gc.collect()
    assert manager.stats().live_segments == 0


def test_segments_of_other_managers_are_adopted_by_copy() -> None:
    other = xs.memory_manager("copy-always")
    mine = xs.SigSeg(np.arange(3, dtype=np.float32), 5, xs.Timebase(10.0), other)
    joined = mine.append(xs.SigSeg(np.ones(2, np.float32), 8, xs.Timebase(10.0), other))
    q = xs.Query()
    out = source(q).map(lambda seg: joined).collect()
    run = q.run(memory="refcount-lazy")
    found = run[out]
    assert all(seg == joined and seg.manager is run.manager for seg in found)


def test_results_live_longer_than_their_run() -> None:
    for memory in xs.MANAGER_NAMES:
        q = xs.Query()
        out = source(q).map(lambda seg: seg.subseg(seg.start + 1, 2)).collect()
        run = q.run(memory=memory)
        found, manager = run[out], run.manager
        del run, q
        gc.collect()
        assert [np.asarray(seg).tolist() for seg in found] == [
            [i + 1, i + 2] for i in range(0, 20, 4)
        ]
        del found
        assert manager.stats().live_segments == 0


def test_operators_keep_segments_as_long_as_they_like() -> None:
    kept: list[xs.SigSeg] = []
    q = xs.Query()
    source(q).sink(kept.append)
    q.run()
    del q
    gc.collect()
    assert np.concatenate([np.asarray(seg) for seg in kept]).tolist() == SAMPLES.tolist()


def test_what_callables_are_called_in_plans() -> None:
    class Filter:
        def __call__(self, seg: xs.SigSeg) -> bool:
            return True

    q = xs.Query()
    source(q).filter(Filter()).sink(print)
    assert [node.name for node in q.nodes] == ["array", "filter(Filter)", "sink(print)"]
