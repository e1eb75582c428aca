"""The cost of an append in the core as the accumulator grows: 256-sample float32 segments."""

from __future__ import annotations

import time
from typing import Any

import pytest
from xstream._native import lib

import xstream as xs
from bench.core import PIECE, Accumulator
from bench.report import Report, best_ns

THOUSAND, MILLION = 1_000, 1_000_000
TURNS = 60


def lazy_costs(keep_pieces: int) -> tuple[float, float, float]:
    """Return ns per append near the thousandth piece, near the millionth, and over all."""
    keep = keep_pieces * PIECE
    around_thousandth, around_millionth = [], []
    amortised = float("inf")
    for _ in range(2):
        tried = Accumulator("refcount-lazy")
        amortised = min(amortised, tried.grow(MILLION, keep))
        tried.drop()
    old = Accumulator("refcount-lazy")
    amortised = min(amortised, old.grow(MILLION, keep))
    for _ in range(TURNS):  # in turns, so that other load affects both alike
        young = Accumulator("refcount-lazy")
        young.grow(THOUSAND, keep)
        around_thousandth.append(young.grow(THOUSAND, keep))
        around_millionth.append(old.grow(THOUSAND, keep))
        young.drop()
    assert old.width == (keep or (MILLION + TURNS * THOUSAND + 1) * PIECE)
    old.drop()
    return min(around_thousandth), min(around_millionth), amortised


@pytest.mark.parametrize("keep_pieces", [0, 500], ids=["growing", "front-trimmed"])
def test_lazy_append_costs_the_same_at_the_millionth_piece(
    benchmark: Any, report: Report, keep_pieces: int
) -> None:
    young, old, amortised = benchmark.pedantic(lazy_costs, (keep_pieces,), rounds=1)
    how = f"front trimmed to {keep_pieces} pieces" if keep_pieces else "growing"
    report.figure(
        f"lazy append, {how}",
        f"{old:.0f} ns at the millionth",
        f"{young:.0f} ns at the thousandth",
        f"{old / young:.2f}",
        "at most 1.5",
        old / young <= 1.5,
    )
    report.figure(
        f"lazy append, {how}: amortised over a million",
        f"{amortised:.0f} ns each",
        f"{young:.0f} ns at the thousandth",
        f"{amortised / young:.2f}",
        "(shown)",
    )


def test_appends_up_to_ten_thousand_pieces(benchmark: Any, report: Report) -> None:
    """Measure how appends grow with the other three managers."""
    marks = (100, 1_000, 10_000)

    def costs(memory: str) -> list[float]:
        accumulator, row, done = Accumulator(memory), [], 0
        for mark in marks:
            accumulator.grow(mark - done)
            row.append(min(accumulator.grow(10) for _ in range(6)))
            done = mark + 60
        accumulator.drop()
        return row

    measured = benchmark.pedantic(
        lambda: {memory: costs(memory) for memory in xs.MANAGER_NAMES}, rounds=1
    )
    ideas = {
        "copy-always": "copies both sides: grows with the length",
        "refcount-copy": "copies both sides: grows with the length",
        "refcount-realloc": "copies the later side; the block moves ever more rarely",
        "refcount-lazy": "copies nothing",
    }
    report.table(
        "ns per append of 256 float32, by pieces in the accumulator",
        ["manager", *[f"{mark:,}" for mark in marks], "10,000 : 100", "why"],
        [
            [memory, *[f"{ns:,.0f}" for ns in row], f"{row[-1] / row[0]:.1f}", ideas[memory]]
            for memory, row in measured.items()
        ],
    )


def test_an_append_that_branches_off(benchmark: Any, report: Report) -> None:
    """Another segment has extended the chunk: a new chunk, and a spine of O(log pieces) runs."""
    rows, costs = [], {}

    def branch_ns(pieces: int) -> float:
        accumulator = Accumulator("refcount-lazy")
        accumulator.grow(pieces - 1)
        handle, width = accumulator.handle, accumulator.width
        more = lib.xs_seg_new(accumulator.manager._handle, width, PIECE, 4)
        taken = lib.xs_seg_append(handle, more)  # now every further append branches

        def branch() -> None:
            lib.xs_seg_drop(lib.xs_seg_append(handle, more))

        ns = best_ns(branch, 500)
        assert lib.xs_seg_width(taken) == width + PIECE
        for seg in (taken, more):
            lib.xs_seg_drop(seg)
        accumulator.drop()
        return ns

    def run() -> None:
        for pieces in (10, 1_000, 100_000, MILLION):
            costs[pieces] = branch_ns(pieces)
            rows.append([f"{pieces:,}", f"{costs[pieces]:,.0f}"])

    benchmark.pedantic(run, rounds=1)
    report.table("ns per branching append and drop (with two calls from Python)",
                 ["pieces", "ns"], rows)  # fmt: skip
    ratio = costs[MILLION] / costs[1_000]
    report.figure("branching append", f"{costs[MILLION]:.0f} ns at a million pieces",
                  f"{costs[1_000]:.0f} ns at a thousand", f"{ratio:.2f}",
                  "O(log pieces): about 2", ratio <= 3)  # fmt: skip


def test_freeing_a_million_pieces(benchmark: Any, report: Report) -> None:
    accumulators = []
    for _ in range(3):
        accumulator = Accumulator("refcount-lazy", piece=16)
        accumulator.grow(MILLION - 1)
        assert accumulator.pieces == MILLION
        accumulators.append(accumulator)
    seconds = []

    def drop() -> None:
        begin = time.perf_counter()
        accumulators.pop().drop()
        seconds.append(time.perf_counter() - begin)

    benchmark.pedantic(drop, rounds=3)
    per_piece = min(seconds) / MILLION * 1e9
    report.figure("freeing a million pieces at once", f"{min(seconds) * 1e3:.0f} ms",
                  "-", f"{per_piece:.0f} ns per piece", "no recursion", True)  # fmt: skip
