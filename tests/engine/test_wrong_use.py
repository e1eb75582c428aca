"""What a user gets wrong is said in a sentence of ours, and as early as it can be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstream as xs

Use = Callable[[Any], Any]


def source() -> Any:
    return xs.Query().source(xs.io.array(np.arange(64.0), window=8))


def iterable(items: Any, out: Any = int) -> Any:
    return xs.Query().source(xs.io.iterable(items, out=out))


@xs.kernel(out=int)
def emits_too_many(window, out):
    out.emit(1, 2)


@xs.kernel(out={"a": int, "b": xs.Out("f8")})
def emits_too_few(window, out):
    out.emit(1)


@xs.kernel(out=xs.Out("f8"))
def emits_a_number(window, out):
    out.emit(window[0])


@xs.kernel(out=float)
def emits_an_array(window, out):
    out.emit(window)


@xs.kernel(out=xs.Out("f8"))
def returns_a_number(window):
    return window[0]


@xs.kernel(out=float)
def returns_an_array(window):
    return window * 2.0


@xs.kernel(out=np.float32)
def fills_a_scalar(window, out):
    out[0] = 1.0


DECLARED: dict[str, tuple[Use, str]] = {
    "fir of letters": (lambda src: src.fir("abc"), "taps must be one or more finite numbers"),
    "fir of a number": (lambda src: src.fir(3), "fir: taps must be .*, not 3"),
    "fir of rows": (lambda src: src.fir([[1.0]]), "taps must be one or more finite numbers"),
    "fir beyond floats": (lambda src: src.fir([10**400]), "taps must be one or more finite"),
    "decimate of letters": (lambda src: src.decimate(2, taps="abc"), "decimate: taps must be"),
    "too many emitted": (
        lambda src: src.iterate(emits_too_many),
        "^kernel 'emits_too_many': out= declares 1 fields and 2 are emitted$",
    ),
    "too few emitted": (
        lambda src: src.iterate(emits_too_few), "out= declares 2 fields and 1 are emitted",
    ),
    "a number emitted for a segment": (
        lambda src: src.iterate(emits_a_number), "declares a segment as field 0 and float64 is",
    ),
    "an array emitted for a number": (
        lambda src: src.iterate(emits_an_array), "declares a number as field 0 and .*array",
    ),
    "a number for a segment": (
        lambda src: src.map(returns_a_number), "returns a number where out= declares Out",
    ),
    "an array for a number": (
        lambda src: src.map(returns_an_array), "returns an array where out= declares",
    ),
    "a scalar to fill": (lambda src: src.map(fills_a_scalar), r"as xs.Out\(float32\), not as"),
    "ragged arguments": (
        lambda src: src.map(returns_a_number, [[1], [2, 3]]), "an argument is a number of",
    ),
    "map of a number": (lambda src: src.map(3), "map takes a kernel or a callable, not 3"),
    "sink of a number": (lambda src: src.sink(3), "sink requires a callable, not 3"),
    "zip with a number": (lambda src: src.zip(3), "zip, port 'in1': expected a stream, not 3"),
    "merge with a sink": (lambda src: src.merge(src.count()), "expected a stream, not <sink"),
    "gate by a string": (lambda src: src.gate("a"), "gate, port 'control': expected a stream"),
    "gate of another query": (lambda src: src.gate(source()), "control': a stream of another"),
    "then a number": (lambda src: src.then(3), "expected an operator such as xs.io.array"),
    "source of an array": (
        lambda src: xs.Query().source(np.zeros(9)), "such as xs.io.array.*, not array",  # type: ignore[arg-type]
    ),
    "source of a stream": (lambda src: xs.Query().source(src), "expected an operator"),
    "connected numbers": (lambda src: src.query.connect(3, src), "3 is not a feedback"),
    "connected to a number": (
        lambda src: src.query.connect(src.query.feedback(int), 3), "expected a stream, not 3",
    ),
    "a number for a name": (lambda src: src.collect(name=3), "a name must be a string, not 3"),
    "select by number": (lambda src: src.select(3), "a field name must be a string, not 3"),
    "field names": (lambda src: src.map(len, out={1: int}), "the name of a field is a string"),
    "uint64": (lambda src: src.map(len, out=np.uint64), "uint64'>: the types are bool, int8, .*"),
    "float16": (lambda src: src.map(len, out="f2"), "not 'f2': the types are bool"),
    "SigSeg as a type": (lambda src: src.map(len, out=xs.SigSeg), "with xs.Segment\\(dtype\\)"),
    "a list of types": (lambda src: src.map(len, out=[int]), "a scalar field is a bool"),
    "no scalar": (lambda src: xs.Scalar("abc"), "a scalar is one of bool, int8"),
    "no dtype": (lambda src: xs.Out("abc"), "a segment cannot hold 'abc': not a numpy dtype"),
    "no timebase": (lambda src: xs.Segment("f4", 3), "a timebase is an xs.Timebase, not 3"),  # type: ignore[arg-type]
    "no ratio": (lambda src: xs.Out("f4", rate="abc"), "a rate is a positive ratio, not 'abc'"),  # type: ignore[arg-type]
    "a rate of letters": (lambda src: xs.io.array([1.0], rate_hz="a"), "rate_hz must be"),  # type: ignore[arg-type]
    "an offered rate of letters": (
        lambda src: xs.io.array([1.0], offered_hz="a"), "offered_hz is a positive rate, not 'a'",  # type: ignore[arg-type]
    ),
    "half a start": (lambda src: xs.io.array([1.0], start=1.5), "start is .*, not 1.5"),  # type: ignore[arg-type]
    "ragged samples": (lambda src: xs.io.array([[1], [2, 3]]), "in one dimension, not"),  # type: ignore[list-item]
    "ragged single samples": (lambda src: xs.io.samples([[1], [2, 3]]), "in one dimension, not"),  # type: ignore[list-item]
    "objects": (lambda src: source().query.source(
        xs.io.array(np.array([1, "a"], object))), "cannot hold dtype object"),
    "no iterable": (lambda src: iterable(3), "come from an iterable, or from a function .* from 3"),
    "a limit of letters": (lambda src: xs.memory_manager(limit_bytes="a"), "limit_bytes must be"),  # type: ignore[arg-type]
    "an unknown manager": (lambda src: xs.memory_manager([]), "there is no memory manager"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("what", DECLARED)
def test_a_mistake_is_found_where_it_is_made(what: str) -> None:
    declare, said = DECLARED[what]
    with pytest.raises(xs.XStreamError, match=said):
        declare(source())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scheduler": "nonsense"}, "there is no scheduler 'nonsense': choose one of fifo"),
        ({"scheduler": []}, "there is no scheduler"),
        ({"memory": "nonsense"}, "there is no memory manager 'nonsense'"),
        ({"memory": 3}, "there is no memory manager 3"),
        ({"tuple_burst": 0}, "tuple_burst must be a number of tuples"),
        ({"tuple_burst": 1.5}, "tuple_burst must be .*, not 1.5"),
        ({"tuple_burst": True}, "tuple_burst must be .*, not True"),
        ({"scheduler": "fifo-slice", "slice_us": "a"}, "a time slice is a positive number"),
        ({"scheduler": "fifo-slice", "slice_us": float("nan")}, "a time slice is .*, not nan"),
        ({"progress": 3}, "progress must be True, False or a function of the run, not 3"),
        ({"stop": 3}, "stop must be a threading.Event, not 3"),
        ({"state": 3}, "state must be a dictionary by streams or names of operators, not 3"),
    ],
)
def test_options_of_a_run(options: dict[str, Any], said: str) -> None:
    src = source()
    src.count()
    with pytest.raises(xs.QueryError if "memory" not in options else xs.ManagerError, match=said):
        src.query.run(**options)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda src: src.filter(lambda seg: "a"), "a filter returns True or False, not 'a'"),
        (lambda src: src.filter(np.isfinite), "a filter returns True or False, not array"),
        (lambda src: src.iterate(lambda seg: 5, out=int), "iterable of tuples, or None, not 5"),
        (lambda src: src.iterate(lambda seg: seg), "iterable of tuples, or None, not <SigSeg"),
        (lambda src: iterable(lambda: 3), "come from an iterable, or from a function"),
    ],
)
def test_a_mistake_that_only_a_tuple_shows(use: Use, said: str) -> None:
    sink = use(source()).count()
    with pytest.raises(xs.OperatorError, match=said):
        sink.query.run()


def test_a_segment_is_an_iterable_of_its_samples() -> None:
    out = source().iterate(lambda seg: seg[:1], out=float).collect()
    assert out.query.run()[out] == list(np.arange(0.0, 64.0, 8.0))


def test_filters_take_numbers_and_none_for_flags() -> None:
    src = iterable(range(6))
    sinks = [
        src.filter(flag).collect()
        for flag in (lambda i: i % 2, lambda i: np.bool_(i > 3), lambda i: i > 4 or None)
    ]
    run = src.query.run()
    assert [run[sink] for sink in sinks] == [[1, 3, 5], [4, 5], [5]]


def test_an_iterator_serves_one_run_and_says_so() -> None:
    out = iterable(iter([1, 2])).collect()
    assert out.query.run()[out] == [1, 2]
    for _ in range(2):
        with pytest.raises(xs.OperatorError, match="has been used up, and an iterator serves one"):
            out.query.run()
    consumed = (i for i in range(3))
    assert list(consumed) == [0, 1, 2]
    closed = iterable(consumed).collect()
    with pytest.raises(xs.OperatorError, match="give a list, or a function that returns a new"):
        closed.query.run()
    fresh = iterable(lambda: iter([7])).collect()
    assert [fresh.query.run()[fresh] for _ in range(2)] == [[7], [7]]


@xs.kernel(out=np.float32)
def tenth(x):
    return x * 0.1


@xs.kernel(out={"small": np.int8, "x": np.float32})
def emits_small(x, out):
    out.emit(x + 1, 0.1 * x)


@xs.kernel
def same_type(x):
    return x * x


def test_scalars_keep_the_type_that_out_declares() -> None:
    src = iterable([1.0, 3.0], out=float)
    returned, emitted = src.map(tenth), src.iterate(emits_small)
    plain = src.map(lambda x: x * 0.1, out=np.float32)
    assert [str(stream.schema) for stream in (returned, plain)] == ["float32"] * 2
    assert str(emitted.schema) == "(small: int8, x: float32)"
    squared = plain.map(same_type).collect()
    sinks = [stream.collect() for stream in (returned, plain, emitted)]
    run = src.query.run()
    tenths = [float(np.float32(0.1)), float(np.float32(3.0 * 0.1))]
    assert [run[sink] for sink in sinks[:2]] == [tenths] * 2
    assert run[sinks[2]] == [(2, tenths[0]), (4, tenths[1])]
    # A kernel gets it as a float32, and computes in float32.
    assert run[squared] == [float(np.float32(x) * np.float32(x)) for x in tenths]
