"""Making 4,096-sample float32 pieces contiguous, against one memcpy of the same bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xstream._native import ffi, lib

from bench.core import Accumulator
from bench.report import Report

PIECE = 4096
MEGABYTES = (4, 64, 256)


def alternately(one: Callable[[], float], two: Callable[[], float], times: int) -> list[float]:
    """Return the best of each, measured in turns so that other load affects both alike."""
    both = [(one(), two()) for _ in range(times)]
    return [min(column) for column in zip(*both, strict=True)]


def seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


@pytest.mark.parametrize("megabytes", MEGABYTES)
def test_materialising_keeps_up_with_one_memcpy(
    benchmark: Any, report: Report, megabytes: int
) -> None:
    size = megabytes << 20
    pieces = size // (4 * PIECE)
    accumulator = Accumulator("refcount-lazy", piece=PIECE)
    accumulator.grow(pieces - 1)
    manager, handle, samples = accumulator.manager._handle, accumulator.handle, pieces * PIECE
    source = np.ones(size, np.uint8)
    target = np.ones(size, np.uint8)  # warmed: every page has been written
    source_at, target_at = ffi.from_buffer(source), ffi.from_buffer(target)
    hold = ffi.new("xs_block **")

    def copy_into_warm() -> float:
        return seconds(lambda: ffi.memmove(target_at, source_at, size))

    def read_into_warm() -> float:
        return seconds(lambda: lib.xs_seg_read(handle, 0, samples, target_at))

    def copy_into_fresh() -> float:
        """One memcpy into a new block."""

        def act() -> None:
            seg = lib.xs_seg_new(manager, 0, samples, 4)
            ffi.memmove(lib.xs_seg_own_data(seg), source_at, size)
            fresh.append(seg)

        fresh: list[Any] = []
        spent = seconds(act)
        lib.xs_seg_drop(fresh[0])
        return spent

    def hold_into_fresh() -> float:
        seg = lib.xs_seg_subseg(handle, 1, samples - 1)  # a list that has no contiguous copy yet
        spent = seconds(lambda: lib.xs_seg_hold(seg, hold))
        lib.xs_block_unhold(hold[0])
        lib.xs_seg_drop(seg)
        return spent

    times = max(10, 1024 // megabytes)

    def run() -> tuple[list[float], list[float]]:
        warm = alternately(copy_into_warm, read_into_warm, times)
        return warm, alternately(copy_into_fresh, hold_into_fresh, times)

    warm, fresh = benchmark.pedantic(run, rounds=1)
    target[:] = 1
    lib.xs_seg_read(handle, 0, samples, target_at)
    assert not target.any()
    for memory, (memcpy, ours) in (("warmed", warm), ("fresh", fresh)):
        report.figure(
            f"materialise {megabytes} MB into {memory} memory",
            f"{size / ours / 1e9:.2f} GB/s",
            f"memcpy {size / memcpy / 1e9:.2f} GB/s",
            f"{memcpy / ours:.0%}",
            "80 % or more",
            memcpy / ours >= 0.8,
        )
    accumulator.drop()
