"""A kernel that walks the pieces of a segment against one that has it made contiguous."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xstream as xs
from bench.reporting import Report
from xstream.bench.queries import Engine
from xstream.bench.trials import Trial, interleave

PIECE = 4096
SAMPLES = 1 << 22
TRIALS = 15


@xs.kernel(each=True)
def placed(x):
    return x + np.int32(1)  # into blocks of its own, or neighbours would be one range


@xs.kernel(pieces=True)
def walked(window):
    total = 0
    for piece in window.pieces():
        total += piece.sum()
    return total


@xs.kernel
def contiguous(window):
    total = 0
    for first in range(0, len(window), PIECE):  # the same sums in the same order
        total += window[first : first + PIECE].sum()
    return total


def declared(samples: Any, pieces: int) -> tuple[xs.Query, xs.Stream]:
    """A query whose windows are lists of pieces."""
    query = xs.Query(f"{pieces} pieces")
    source = query.source(xs.io.array(samples, window=PIECE))
    return query, source.map(placed).rewindow(pieces * PIECE)


def contender(samples: Any, pieces: int, kernel: Any) -> Callable[[], Trial]:
    query, windows = declared(samples, pieces)
    if kernel is None:
        windows.count()
    else:
        windows.map(kernel).collect()  # a sum that is only counted would not be computed
    return lambda: Engine().timed_run(query)[1]


@pytest.mark.parametrize("pieces", [4, 16, 256])
def test_walking_pieces_against_making_them_contiguous(
    benchmark: Any, report: Report, pieces: int
) -> None:
    samples = np.arange(SAMPLES, dtype=np.int32)
    results = []
    for kernel in (walked, contiguous):
        query, windows = declared(samples, pieces)
        out = windows.map(kernel).collect()
        results.append(query.run()[out])
    assert results[0] == results[1]
    assert len(results[0]) == SAMPLES // (pieces * PIECE)
    contenders = {
        "front": contender(samples, pieces, None),
        "walked": contender(samples, pieces, walked),
        "contiguous": contender(samples, pieces, contiguous),
    }
    found = benchmark.pedantic(lambda: interleave(contenders, TRIALS), rounds=1)
    ns = {name: 1e9 / result.samples_per_second * PIECE for name, result in found.items()}
    report.figure(
        f"sum of windows of {pieces} pieces, ns per piece",
        f"walked {ns['walked']:.0f} ({ns['walked'] - ns['front']:.0f} without what is in front)",
        f"contiguous {ns['contiguous']:.0f} ({ns['contiguous'] - ns['front']:.0f})",
        f"{ns['contiguous'] / ns['walked']:.2f}",
        "shown",
    )
