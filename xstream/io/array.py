"""`xs.io.array`: a recording in memory as a stream of windows, or of single samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.errors import SchemaError
from xstream.ops.native import NativePlan, checked
from xstream.ops.operator import Operator
from xstream.ops.schema import Field, Scalar, Schema, Segment, scalar_of
from xstream.sigseg import SigSeg, Timebase

__all__ = ["ArraySource", "SampleSource", "array", "samples"]

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
    """The samples of a recording one by one, each with its index: the engine without segments."""

    kind = "samples"
    ports = ()
    recording: npt.NDArray[Any] = field(repr=False)
    repeat: int | None = 1

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        value = scalar_of(self.recording.dtype)
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
    """The recording as a segment of the plan's manager: loading, before the clock starts."""
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

    With `repeat` it plays so many times (None: for ever), joined seamlessly: indices run on and
    windows span the seam. `partial=False` drops a last window that is not full. `offered_hz` lets
    samples arrive at that rate instead of all at once.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.array(np.arange(3), window=2, repeat=2)).collect()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0, 1], [2, 0], [1, 2]]
    """
    data = np.asarray(samples)
    if data.ndim != 1:
        raise SchemaError(f"a recording has one dimension, not {data.ndim}")
    if not isinstance(window, int | np.integer) or window < 1:
        raise SchemaError(f"a window has at least one sample, not {window!r}")
    if offered_hz is not None and not 0 < offered_hz < float("inf"):
        raise SchemaError(f"offered_hz is a positive rate, not {offered_hz!r}")
    _check_repeat(repeat)
    timebase = Timebase.index() if rate_hz is None else Timebase(rate_hz, start_time)
    return ArraySource(data, timebase, int(window), repeat, start, partial, offered_hz)


def _check_repeat(repeat: int | None) -> None:
    if repeat is not None and (not isinstance(repeat, int | np.integer) or repeat < 0):
        raise SchemaError(f"repeat is how many times, or None for ever, not {repeat!r}")


def samples(recording: npt.ArrayLike, repeat: int | None = 1) -> SampleSource:
    """A recording as a stream of (index, value) tuples, one a sample, without segments."""
    data = np.asarray(recording)
    if data.ndim != 1 or data.dtype.str[1:] not in _SAMPLE_TYPES:
        raise SchemaError(
            f"samples are real numbers in one dimension, not {data.dtype} in {data.ndim}"
        )
    _check_repeat(repeat)
    return SampleSource(data, repeat)
