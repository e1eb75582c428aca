"""`xs.io.array`: a recording in memory as a stream of windows, or of single samples."""

from __future__ import annotations

import reprlib
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import MAX_SIZE, Operator
from xstream.engine.schema import Field, Scalar, Schema, Segment, shortened
from xstream.errors import SchemaError
from xstream.sigseg import SigSeg, Timebase

__all__ = ["ArraySource", "SampleSource", "array", "samples"]

#: Most repetitions of a recording within one window.
MAX_ROUNDS = 2**20
_LAST_START = 2**62
#: Sample types as xstream/ops/sources.c numbers them.
_SAMPLE_TYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")


@dataclass(frozen=True, eq=False)
class ArraySource(Operator):
    """Windows of a recording."""

    kind = "array"
    ports = ()
    recording: npt.NDArray[Any] = field(repr=False)
    timebase: Timebase = field(default_factory=Timebase.index)
    window: int = 4096
    repeat: int | None = 1
    start: int = 0
    partial: bool = True
    offered_hz: float | None = None

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (Schema((Field("value", Segment(self.recording.dtype, self.timebase)),)),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        recording = _loaded(plan, self.recording, self.start, self.timebase)
        repeat = -1 if self.repeat is None else self.repeat
        return checked(
            lib.xs_op_array_source(
                plan.handle, recording._handle, self.window, repeat, self.partial,
                self.offered_hz or 0.0,
            )
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SampleSource(Operator):
    """Emits the samples of a recording one by one, each with its index, without segments."""

    kind = "samples"
    ports = ()
    recording: npt.NDArray[Any] = field(repr=False)
    repeat: int | None = 1

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        value = Scalar({"b": "bool", "f": "float64"}.get(self.recording.dtype.kind, "int64"))
        return (Schema((Field("index", Scalar("int64")), Field("value", value))),)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        recording = _loaded(plan, self.recording, 0, Timebase.index())
        repeat = -1 if self.repeat is None else self.repeat
        number = _SAMPLE_TYPES.index(self.recording.dtype.str[1:])
        return checked(lib.xs_op_sample_source(plan.handle, recording._handle, number, repeat))


def _loaded(
    plan: NativePlan, recording: npt.NDArray[Any], start: int, timebase: Timebase
) -> SigSeg:
    """The recording as a segment of the plan's manager; loaded before the clock starts."""
    loaded = SigSeg(recording, start, timebase, plan.manager)
    plan.keep(loaded)
    return loaded


def array(
    samples: npt.ArrayLike,
    rate_hz: float | None = None,
    window: int = 4096,
    repeat: int | None = 1,
    *,
    start: int = 0,
    start_time: float = 0.0,
    partial: bool = True,
    offered_hz: float | None = None,
) -> ArraySource:
    """A recording as a stream of segments of `window` samples.

    With `repeat` it is repeated that often (None: forever) without a gap: indices run on and
    windows span the seam. `partial=False` drops a last window that is not full. `offered_hz` lets
    samples arrive at that rate instead of all at once.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.array(np.arange(3), window=2, repeat=2)).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0, 1], [2, 0], [1, 2]]
    """
    data = _recording(samples)
    if data.ndim != 1:
        raise SchemaError(f"a recording has one dimension, not {data.ndim}")
    if not _whole(window, 1):
        most = f"and at most {MAX_SIZE}, " if isinstance(window, int) and window > 1 else ""
        raise SchemaError(f"a window has at least one sample, {most}not {shortened(window)}")
    if not _whole(start, -_LAST_START, _LAST_START - len(data)):
        raise SchemaError(
            f"start is the index of the first sample, a whole number within 2**62, not "
            f"{shortened(start)}"
        )
    _check_repeat(repeat)
    _check_rounds(len(data), int(window), repeat)
    _check_offered(offered_hz)
    timebase = Timebase.index() if rate_hz is None else Timebase(rate_hz, start_time)
    return ArraySource(data, timebase, int(window), repeat, int(start), partial, offered_hz)


def _recording(samples: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        return np.asarray(samples)
    except ValueError:
        raise SchemaError(
            f"a recording is an array of numbers in one dimension, not {reprlib.repr(samples)}"
        ) from None


def _whole(value: object, least: int, most: int = MAX_SIZE) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= value <= most  # type: ignore[operator]


def _check_repeat(repeat: int | None) -> None:
    if repeat is not None and not _whole(repeat, 0):
        raise SchemaError(
            f"repeat is how many times, at most {MAX_SIZE}, or None for ever, not "
            f"{shortened(repeat)}"
        )


def _check_rounds(length: int, window: int, repeat: int | None) -> None:
    """Limit the repetitions within one window: joining them cannot be interrupted."""
    rounds = window // length if length else 0
    if rounds > MAX_ROUNDS and (repeat is None or repeat > MAX_ROUNDS):
        raise SchemaError(
            f"a window of {window} samples would take {rounds} rounds of a recording of {length}; "
            f"at most {MAX_ROUNDS} are joined"
        )


def _check_offered(offered_hz: object) -> None:
    number = isinstance(offered_hz, int | float | np.integer | np.floating)
    if offered_hz is None or (number and 0 < offered_hz <= sys.float_info.max):  # type: ignore[operator]
        return
    raise SchemaError(f"offered_hz is a positive rate, not {shortened(offered_hz)}")


def samples(recording: npt.ArrayLike, repeat: int | None = 1) -> SampleSource:
    """A recording as a stream of (index, value) tuples, one per sample, without segments.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> out = query.source(xs.io.samples(np.array([1.5, 2.5]))).collect()
    >>> query.run()[out]
    [(0, 1.5), (1, 2.5)]
    """
    data = _recording(recording)
    if data.ndim != 1 or data.dtype.str[1:] not in _SAMPLE_TYPES:
        raise SchemaError(
            f"samples are real numbers in one dimension, not {data.dtype} in {data.ndim}"
        )
    _check_repeat(repeat)
    return SampleSource(data, repeat)
