"""The samples of a segment as a small SVG picture: minimum and maximum of each column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["waveform"]

WIDTH, HEIGHT = 600, 96
#: Visible on light and on dark pages.
STROKE = "#3b8fd4"


def waveform(samples: NDArray[Any]) -> str:
    """Draw samples; empty for those that have no order, such as complex numbers or records.

    >>> waveform(np.array([0.0, 1.0, 0.0])).startswith("<svg")
    True
    >>> waveform(np.zeros(3, complex))
    ''
    """
    if samples.dtype.kind not in "fiub" or not len(samples):
        return ""
    values = samples.astype(np.float64)
    known = np.isfinite(values)
    if not known.any():
        return ""
    low, high = values[known].min(), values[known].max()
    span = high - low or 1.0
    columns = min(len(values), WIDTH)
    edges = np.linspace(0, len(values), columns + 1).astype(np.int64)[:-1]
    least = np.minimum.reduceat(np.where(known, values, np.inf), edges)
    most = np.maximum.reduceat(np.where(known, values, -np.inf), edges)
    points = []
    for column in np.flatnonzero(most >= least):
        x = WIDTH * (column + 0.5) / columns
        ends = sorted({least[column], most[column]}, reverse=bool(column % 2))
        points += [f"{x:.1f},{2 + (HEIGHT - 4) * (1 - (y - low) / span):.1f}" for y in ends]
    if len(points) == 1:  # a line of one point would not be seen
        points *= 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" style="max-width:100%;height:auto" role="img">'
        f"<title>{len(values):,} samples from {low:g} to {high:g}</title>"
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{STROKE}" '
        'stroke-width="1.4" vector-effect="non-scaling-stroke" '
        'stroke-linejoin="round" stroke-linecap="round"/></svg>'
    )
