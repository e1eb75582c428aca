"""CPU time to compile queries of ten operators, in child processes with fresh caches."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.report import ROOT, Report
from xstream.bench.children import run_child

#: CPU seconds for a query of ten operators, declared and run, with an empty cache.
MOST_SECONDS = 3.0
TRIALS = 3


def child(which: str, cache: Path) -> dict[str, float]:
    """Declare and run the query in a separate process."""
    done = run_child(
        [sys.executable, "-m", "bench.compile_run", which], limit_seconds=300, cwd=str(ROOT),
        env={**os.environ, "XSTREAM_CACHE_DIR": str(cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compile_seconds(found: dict[str, float]) -> float:
    """CPU seconds of declaring and running, without importing numba."""
    return found["declare"] + found["run"]


@pytest.mark.parametrize("which", ["maps", "mixed"])
def test_engine_compile_ten_operators(
    benchmark: Any, report: Report, tmp_path: Path, which: str
) -> None:
    pairs: list[tuple[dict[str, float], dict[str, float]]] = []

    def measure() -> None:
        cache = tmp_path / str(len(pairs))
        pairs.append((child(which, cache), child(which, cache)))

    benchmark.pedantic(measure, rounds=TRIALS)
    cold, cached = (min(runs, key=compile_seconds) for runs in zip(*pairs, strict=True))
    benchmark.extra_info.update({"cold": cold, "cached": cached})
    report.table(
        f"compiling ten operators, {which}: processor seconds, best of {TRIALS}",
        ["cache", "import numba", "declare", "run", "declare and run"],
        [
            [name, *(f"{found[part]:.2f}" for part in ("import", "declare", "run")),
             f"{compile_seconds(found):.2f}"]
            for name, found in (("empty", cold), ("filled", cached))
        ],
    )  # fmt: skip
    seconds, again = compile_seconds(cold), compile_seconds(cached)
    report.figure(
        f"compiling ten operators, {which}", f"{seconds:.2f} s", f"from the cache: {again:.2f} s",
        f"{seconds / again:.1f}", f"<= {MOST_SECONDS:g} s", seconds <= MOST_SECONDS,
    )  # fmt: skip
