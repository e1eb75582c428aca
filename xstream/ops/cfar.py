"""cfar: a detector with a constant false alarm rate at any level of noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xstream.engine.operator import finite_number, whole_number
from xstream.engine.schema import Scalar, Schema, Segment
from xstream.kernels.kernel import Kernel, kernel_of
from xstream.ops._kernels import detection
from xstream.ops.window_kernel import RangeKernel
from xstream.sigseg import Timebase

__all__ = ["Cfar"]


@dataclass(frozen=True)
class Cfar(RangeKernel):
    """Emits (keep, start, stop) for `sync`: ranges of samples whose scores exceed the noise.

    Scores are the samples of segments, or single numbers that are counted from 0; score
    i is that of samples [i * step, (i + 1) * step). The noise is modelled by a running mean and
    deviation, with weight `alpha` on the past (a plain average at first), that learns from
    everything that is not an event (XStream, section II.A).

    An event starts with a score above mean + `sigmas` deviations, once `startup` scores have been
    learnt; it ends `refractory` scores after the last such one, or when it is `longest` scores old,
    which means that the noise has changed. Its range is padded by `padding` samples on either side.
    Ranges with keep=False tell which samples are no longer needed; they bound the memory of `sync`.
    """

    kind = "cfar"
    sigmas: float
    alpha: float = 0.999
    startup: int = 300
    refractory: int = 40
    padding: int = 2400
    step: int = 1
    longest: int = 10_000

    def __post_init__(self) -> None:
        finite_number(self, "sigmas", self.sigmas, 0.0, np.finfo(float).max)
        finite_number(self, "alpha", self.alpha, 0.0, 1.0)
        for name, least in (
            ("startup", 1), ("refractory", 1), ("padding", 0), ("step", 1), ("longest", 1),
        ):  # fmt: skip
            whole_number(self, name, least=least)

    def check(self, inputs: Schema) -> None:
        if not _single_scores(inputs):
            super().check(inputs)

    def range_timebase(self, segment: Segment) -> Timebase:
        return segment.timebase.scaled(self.step)

    def kernel_for(self, inputs: Schema) -> Kernel:
        return _OF_NUMBERS if _single_scores(inputs) else _OF_SEGMENTS

    def kernel_arguments(self, inputs: Schema) -> tuple[Any, ...]:
        return (
            float(self.alpha), float(self.sigmas), self.startup, self.refractory, self.padding,
            self.step, self.longest,
        )  # fmt: skip


def _single_scores(inputs: Schema) -> bool:
    first = inputs.types[0]
    return len(inputs) == 1 and isinstance(first, Scalar) and first.slot == "float64"


def _kernel(function: Any) -> Kernel:
    return kernel_of(
        function,
        state={
            "model": np.zeros(2), "at": np.zeros(6, np.int64), "flags": np.zeros(2, np.bool_),
        },
        out={"keep": bool, "start": int, "stop": int},
        at_end=True,
    )  # fmt: skip


_OF_SEGMENTS = _kernel(detection.cfar)
_OF_NUMBERS = _kernel(detection.cfar_of_numbers)
