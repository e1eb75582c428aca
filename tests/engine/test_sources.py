"""Sources: recordings by window and by sample, and iterables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xstream as xs


def windows(samples: Any, memory: str = "refcount-lazy", **options: Any) -> list[Any]:
    q = xs.Query()
    out = q.source(xs.io.array(samples, **options)).collect()
    return [(seg.start, np.asarray(seg).tolist()) for seg in q.run(memory=memory)[out]]


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_repeats_join_seamlessly(memory: str) -> None:
    for length in (1, 2, 3, 5, 8, 13):
        for window in (1, 2, 3, 4, 8, 40):
            for repeat in (0, 1, 2, 5):
                for partial in (True, False):
                    whole = np.tile(np.arange(length), repeat)
                    expected = [
                        (10 + i, whole[i : i + window].tolist())
                        for i in range(0, len(whole), window)
                        if partial or i + window <= len(whole)
                    ]
                    found = windows(
                        np.arange(length), memory, window=window, repeat=repeat, start=10,
                        partial=partial,
                    )  # fmt: skip
                    assert found == expected, (length, window, repeat, partial)


def test_empty_recordings_end_at_once() -> None:
    for repeat in (0, 1, 3, None):
        assert windows(np.empty(0), repeat=repeat) == []


def test_timebases() -> None:
    q = xs.Query()
    out = q.source(xs.io.array(np.zeros(4), rate_hz=2.0, start_time=5.0, start=4)).collect()
    (segment,) = q.run()[out]
    assert segment.time_of(segment.start) == 7.0


def test_other_byte_orders_and_strides() -> None:
    assert windows(np.arange(6, dtype=">i4")[::2], window=2) == [(0, [0, 2]), (2, [4])]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"window": 0}, "at least one sample, not 0"),
        ({"window": 2.5}, "at least one sample, not 2.5"),
        ({"repeat": -1}, "repeat is how many times"),
        ({"repeat": 1.5}, "repeat is how many times"),
        ({"offered_hz": 0.0}, "offered_hz is a positive rate"),
        ({"offered_hz": float("nan")}, "offered_hz is a positive rate"),
    ],
)
def test_parameters_are_checked_when_they_are_given(options: Any, said: str) -> None:
    with pytest.raises(xs.SchemaError, match=said):
        xs.io.array(np.zeros(3), **options)


def test_recordings_have_one_dimension() -> None:
    with pytest.raises(xs.SchemaError, match="one dimension, not 2"):
        xs.io.array(np.zeros((2, 2)))
    for bad in (np.zeros((2, 2)), np.zeros(2, complex), np.zeros(2, np.float16)):
        with pytest.raises(xs.SchemaError, match="real numbers in one dimension"):
            xs.io.samples(bad)
    with pytest.raises(xs.SchemaError, match="repeat"):
        xs.io.samples(np.zeros(2), repeat=-1)


def test_samples_arrive_at_the_rate_that_is_offered() -> None:
    q = xs.Query()
    src = q.source(xs.io.array(np.zeros(100), window=10, offered_hz=500.0))
    out = src.count()
    run = q.run()
    assert run[out] == 10
    assert 0.2 <= run.wall_seconds < 5


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "f4", "f8"])
def test_sample_by_sample(dtype: str) -> None:
    samples = np.array([0, 1, 1, 0], dtype)
    q = xs.Query()
    out = q.source(xs.io.samples(samples, repeat=2)).collect()
    found = q.run()[out]
    assert found == list(enumerate([*samples.tolist(), *samples.tolist()]))
    assert type(found[0][1]) is type(samples.tolist()[0])
    extremes = (
        np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype) if dtype[0] in "iu" else None
    )
    if extremes is not None:
        q = xs.Query()
        out = q.source(xs.io.samples(extremes)).collect()
        assert [x for _, x in q.run()[out]] == extremes.tolist()


def test_samples_of_nothing() -> None:
    for repeat in (0, 1, 5, None):
        q = xs.Query()
        out = q.source(xs.io.samples(np.empty(0), repeat=repeat)).count()
        assert q.run()[out] == 0


def test_iterables_begin_afresh_with_every_run() -> None:
    def numbers() -> Any:
        yield from range(5)

    for items in (numbers, [0, 1, 2, 3, 4], range(5)):
        q = xs.Query()
        out = q.source(xs.io.iterable(items, out=int)).collect()
        for burst in (None, 1, 64):
            assert q.run(tuple_burst=burst)[out] == [0, 1, 2, 3, 4]


def test_iterables_of_segments_count_their_samples() -> None:
    q = xs.Query()
    segments = [xs.SigSeg(np.zeros(n, "f4"), start=n) for n in range(4)]
    out = q.source(xs.io.iterable(segments, out=xs.Segment("f4"))).count()
    run = q.run()
    assert (run[out], run[out].samples, run.source_samples) == (4, 6, 6)


def test_errors_of_an_iterable_name_the_source() -> None:
    def breaks() -> Any:
        yield 1
        raise OSError("the line is dead")

    def cannot_begin() -> Any:
        raise OSError("no line")

    for items, said in [
        (breaks, "numbers: OSError: the line is dead"),
        (cannot_begin, "numbers: OSError: no line"),
        (
            lambda: 5,
            "numbers: SchemaError: iterable: tuples come from an iterable, or from a function that "
            "returns one, not from 5",
        ),
        (["x"], "numbers: SchemaError: iterable: field 'value' is int64, not 'x'"),
    ]:
        q = xs.Query()
        q.source(xs.io.iterable(items, out=int), name="numbers").count()
        with pytest.raises(xs.OperatorError) as caught:
            q.run()
        assert str(caught.value) == said


def test_a_window_larger_than_any_buffer() -> None:
    q = xs.Query()
    out = q.source(xs.io.array(np.ones(1000, np.int8), window=3_000_000, repeat=7000)).map(
        lambda seg: int(np.asarray(seg).sum()), out=int
    ).collect()  # fmt: skip
    assert q.run()[out] == [3_000_000, 3_000_000, 1_000_000]
