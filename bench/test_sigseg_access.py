"""Cutting and indexing a list: O(log pieces)."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from xstream._native import ffi, lib

from bench.core import PIECE, Accumulator
from bench.report import Report

SIZES = (10, 1_000, 100_000, 1_000_000)
CALLS = 500


def cost_ns(act: Any, positions: list[int]) -> float:
    best = float("inf")
    for _ in range(60):
        begin = time.perf_counter_ns()
        for position in positions:
            act(position)
        best = min(best, (time.perf_counter_ns() - begin) / len(positions))
    return best


@pytest.mark.parametrize("what", ["subseg", "index"])
def test_cutting_and_indexing_against_pieces(benchmark: Any, report: Report, what: str) -> None:
    chance, costs = random.Random(1), {}

    def measure(pieces: int) -> float:
        accumulator = Accumulator("refcount-lazy")
        accumulator.grow(pieces - 1)
        handle, width = accumulator.handle, accumulator.width
        sample = ffi.new("float *")

        def subseg(at: int) -> None:
            lib.xs_seg_drop(lib.xs_seg_subseg(handle, at, width - at))

        def index(at: int) -> None:
            lib.xs_seg_read(handle, at, 1, sample)

        positions = [chance.randrange(width - PIECE) for _ in range(CALLS)]
        ns = cost_ns(subseg if what == "subseg" else index, positions)
        accumulator.drop()
        return ns

    def run() -> None:
        costs.update({pieces: measure(pieces) for pieces in SIZES})

    benchmark.pedantic(run, rounds=1)
    report.table(
        f"{what} at {CALLS} random positions, asked again and again: ns (with the call)",
        [f"{pieces:,} pieces" for pieces in SIZES],
        [[f"{costs[pieces]:.0f}" for pieces in SIZES]],
    )
    ratio = costs[SIZES[-1]] / costs[SIZES[1]]
    report.figure(
        f"{what} of a list",
        f"{costs[SIZES[-1]]:.0f} ns at a million pieces",
        f"{costs[SIZES[1]]:.0f} ns at a thousand",
        f"{ratio:.2f}",
        "O(log pieces), far below 1,000",
        ratio <= 20,
    )
