"""The cost of segments from Python: one call, 256-sample float32 segments, refcount-lazy."""

from __future__ import annotations

from typing import Any

import numpy as np

import xstream as xs
from bench.report import Report, best_ns

CALLS = 500


def against(report: Report, name: str, ns: float, floor_ns: float) -> None:
    """Compare with an empty call, which shows the speed of the machine."""
    nothing = best_ns(lambda: None, CALLS)
    report.figure(
        name,
        f"{ns:,.0f} ns",
        f"an empty call {nothing:.0f} ns",
        f"{ns / nothing:.0f}",
        f"below {floor_ns:,.0f} ns",
        ns < floor_ns,
    )


def two_neighbours() -> tuple[xs.SigSeg, xs.SigSeg]:
    mm = xs.memory_manager("refcount-lazy")
    samples = np.arange(256, dtype=np.float32)
    return xs.SigSeg(samples, 0, memory=mm), xs.SigSeg(samples, 256, memory=mm)


def test_append_from_python(benchmark: Any, report: Report) -> None:
    """Growing one accumulator, which is how append is used."""
    mm = xs.memory_manager("refcount-lazy")
    samples = np.arange(256, dtype=np.float32)
    pieces = [xs.SigSeg(samples, 256 * i, memory=mm) for i in range(CALLS + 1)]

    def grow() -> xs.SigSeg:
        seg = pieces[0]
        for piece in pieces[1:]:
            seg = seg.append(piece)
        return seg

    best = min(best_ns(grow, 1, 1) for _ in range(200)) / CALLS
    seg = benchmark.pedantic(grow, rounds=1)
    assert seg.width == 256 * (CALLS + 1)
    against(report, "append from Python", best, 1500)


def test_a_branching_append_from_python(benchmark: Any, report: Report) -> None:
    a, b = two_neighbours()
    assert benchmark(a.append, b).width == 512
    against(report, "append of two ranges from Python", best_ns(lambda: a.append(b), CALLS), 1500)


def test_subseg_from_python(benchmark: Any, report: Report) -> None:
    a, b = two_neighbours()
    joined = a.append(b)
    assert benchmark(joined.subseg, 100, 300).width == 300
    ns = best_ns(lambda: joined.subseg(100, 300), CALLS)
    against(report, "subseg of a list from Python", ns, 1500)
    ns = best_ns(lambda: a.subseg(100, 100), CALLS)
    against(report, "subseg of one range from Python", ns, 1500)


def test_asarray_from_python(benchmark: Any, report: Report) -> None:
    a, _ = two_neighbours()
    first = np.asarray(a)
    assert np.shares_memory(benchmark(np.asarray, a), first)
    ns = best_ns(lambda: np.asarray(a), CALLS)
    against(report, "np.asarray of one range, second call on", ns, 1000)
    ns = best_ns(lambda: np.asarray(a.share()), CALLS)
    report.figure("share and the first np.asarray", f"{ns:,.0f} ns", "-", "-", "(shown)")
