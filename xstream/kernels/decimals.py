"""Numbers as decimal text, written into arrays of bytes by compiled code.

>>> import numpy as np
>>> from xstream.kernels.decimals import put, put_thousandths
>>> line = np.zeros(40, np.uint8)
>>> behind = put(line, 0, -12)
>>> line[behind] = ord(",")
>>> behind = put_thousandths(line, behind + 1, 1_050)
>>> line[:behind].tobytes()
b'-12,1.050'
"""

from __future__ import annotations

from xstream.kernels.compiled import compiled

__all__ = ["put", "put_thousandths"]

MINUS, POINT, ZERO = 45, 46, 48


@compiled
def put(out, at, value):
    """Write an integer above -2**63 in decimal; returns the index behind it."""
    if value < 0:
        out[at] = MINUS
        at += 1
        value = -value
    digits, rest = 1, value
    while rest >= 10:
        rest //= 10
        digits += 1
    for k in range(digits - 1, -1, -1):
        out[at + k] = ZERO + value % 10
        value //= 10
    return at + digits


@compiled
def put_thousandths(out, at, value):
    """Write thousandths, not negative, with three decimals; returns the index behind them."""
    at = put(out, at, value // 1000)
    out[at] = POINT
    for k in range(3, 0, -1):
        out[at + k] = ZERO + value % 10
        value //= 10
    return at + 4
