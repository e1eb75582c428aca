"""Streams at different rates: relates the indices of one to those of another by time.

Sample i of a signal that starts at time t and has rate r was taken at t + i / r. A range [start,
stop) of it is the time from its sample `start` up to its sample `stop`; the samples of another
signal that lie in that time are those from the first one at or after the time of `start` up to the
first one at or after that of `stop`. Adjacent ranges therefore share no sample and skip none. The
arithmetic uses integers and the simplest fractions that the rates represent, so there is no
drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any

from xstream._native import ffi
from xstream.errors import SchemaError
from xstream.sigseg import Timebase

__all__ = ["IDENTITY", "Scale", "native_scales", "scale_between"]

#: Largest term of a ratio, so that products with an index fit into 128 bits.
MAX_TERM = 2**62


@dataclass(frozen=True, slots=True)
class Scale:
    """Index i becomes shift + ceil((num * i + rest) / den)."""

    num: int = 1
    den: int = 1
    rest: int = 0
    shift: int = 0


IDENTITY = Scale()


def scale_between(where: str, of: Timebase | None, to: Timebase) -> Scale:
    """Return the scale from indices of one timebase to those of another at the same time.

    If either has positions but no times, indices are unchanged. `where` names the port in
    the SchemaError for rates whose ratio does not fit into 64 bits.

    >>> scale_between("sync", Timebase(rate_hz=8_000.0), Timebase(rate_hz=44_100.0, start_time=1.0))
    Scale(num=441, den=80, rest=0, shift=-44100)
    """
    if of is None or of == to:
        return IDENTITY
    rate, other = of.exact_rate_hz, to.exact_rate_hz
    if rate is None or other is None:
        return IDENTITY
    slope = other / rate
    offset = (of.exact_start_time - to.exact_start_time) * other
    den = lcm(slope.denominator, offset.denominator)
    shift = floor(offset)
    scale = Scale(int(slope * den), den, int((offset - shift) * den), shift)
    if max(scale.num, scale.den, abs(scale.shift)) > MAX_TERM:
        raise SchemaError(
            f"{where}: signals at {of} and at {to} cannot be related exactly: the ratio of their "
            f"rates, {_rounded(slope)}, or the distance of their starts takes more than 64 bits"
        )
    return scale


def _rounded(ratio: Fraction) -> str:
    return f"about {float(ratio):.6g}"


def native_scales(scales: list[Scale]) -> Any:
    """Return the scales as C structs."""
    return ffi.new("xs_scale[]", [(s.num, s.den, s.rest, s.shift) for s in scales])
