"""Two segments compared, or a segment and a range: what is refused, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xstream.errors import (
    DtypeError,
    ManagerError,
    NotAdjacentError,
    SegmentRangeError,
    TimebaseError,
)
from xstream.sigseg import _interop
from xstream.sigseg.span import Span

if TYPE_CHECKING:
    from xstream.sigseg.segment import SigSeg

__all__ = ["distance_error", "range_error", "same_content", "unify_signals"]


def unify_signals(a: SigSeg, b: object) -> None:
    """Refuse to join two signals; equal ones are unified, which makes later comparisons fast."""
    if not isinstance(b, Span):
        kind = type(b).__name__
        raise DtypeError(f"only a SigSeg can be appended to a SigSeg, not {kind}")
    if a.dtype != b.dtype:
        raise DtypeError(f"cannot append samples of {b.dtype} to samples of {a.dtype}")
    if a.timebase != b.timebase:
        raise TimebaseError(f"cannot append a signal at {b.timebase} to one at {a.timebase}")
    if a.memory != b.memory:
        raise ManagerError(f"cannot append a segment of {b.memory} to one of {a.memory}")
    if a.manager is b.manager:
        b._signal = a._signal


def distance_error(a: SigSeg, b: SigSeg) -> NotAdjacentError:
    distance = b._start - a.stop
    what = "a gap" if distance > 0 else "an overlap"
    return NotAdjacentError(
        f"cannot append [{b._start}, {b.stop}) to [{a._start}, {a.stop}): "
        f"there is {what} of {abs(distance)} samples"
    )


def range_error(seg: SigSeg, start: int, width: int) -> SegmentRangeError:
    if width < 0:
        return SegmentRangeError(f"a subseg cannot have {width} samples")
    return SegmentRangeError(
        f"[{start}, {start + width}) is not inside the segment [{seg._start}, {seg.stop})"
    )


def same_content(a: SigSeg, b: SigSeg) -> bool:
    """Compare piece by piece, without making either contiguous."""
    left, right = a.chunks(), b.chunks()
    x, y = next(left), next(right)
    while True:
        n = min(len(x), len(y))
        if not _interop.same_samples(x[:n], y[:n]):
            return False
        x, y = x[n:], y[n:]
        if not len(x):
            x = next(left, x)
        if not len(y):
            y = next(right, y)
        if not len(x) or not len(y):
            return True
