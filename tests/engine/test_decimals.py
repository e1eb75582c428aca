"""Decimal text from compiled code, against Python's own formatting."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xstream.kernels.decimals import put, put_thousandths

BEGIN = 3  # what lies in front stays as it is


def written(write, value: int) -> str:
    out = np.full(40, ord("#"), np.uint8)
    end = write(out, BEGIN, np.int64(value))
    text = out.tobytes().decode()
    assert text[:BEGIN] == "#" * BEGIN
    assert text[end:] == "#" * (len(text) - end)
    return text[BEGIN:end]


@given(value=st.integers(1 - 2**63, 2**63 - 1) | st.integers(-1000, 1000))
@settings(deadline=None)
def test_integers_are_written_as_python_writes_them(value: int) -> None:
    assert written(put, value) == str(value)


@given(value=st.integers(0, 2**63 - 1) | st.integers(0, 5000))
@settings(deadline=None)
def test_thousandths_have_three_decimals(value: int) -> None:
    assert written(put_thousandths, value) == f"{Decimal(value).scaleb(-3):.3f}"
