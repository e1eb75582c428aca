"""Copies of expressways: reports per second at L = 1,000, by stage, and memory bandwidth.

The input is a generated directory with history, named by XSTREAM_TRAFFIC (`xstream linearroad
generate --expressways 10 --minutes 180 --history --out DIR`). Runs begin with the state before the
last ten minutes, when the roads are full. To run only this file:
`XSTREAM_TRAFFIC=DIR python -m pytest bench/test_linearroad_rating.py --benchmark-enable
--benchmark-only -s`; XSTREAM_L chooses another L.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from linearroad.rating.job import checked_base
from linearroad.rating.originals import prepare
from linearroad.rating.steps import call

from bench.report import Report

LEAST_MILLIONS = 16.0  # reports/s on two cores
MOST_GIB = 6.0
WORKERS = 2
#: Memory traffic per report in bytes: the last report is read, the new one is fetched and written,
#: 24 each; the quoted toll is read, fetched and written, 4 each.
MOVED_BYTES = 24 + 24 + 24 + 3 * 4
COPIED_BYTES = 1 << 28


def memory_pace() -> float:
    """The bandwidth of two threads that only copy, in bytes read and written per second."""
    arrays = [(np.ones(COPIED_BYTES, np.uint8), np.zeros(COPIED_BYTES, np.uint8)) for _ in "12"]
    best = 0.0
    for _ in range(5):
        threads = [threading.Thread(target=np.copyto, args=(to, by)) for by, to in arrays]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = time.perf_counter() - begin
        best = max(best, 2 * len(arrays) * COPIED_BYTES / spent)  # read and written
    return best


@pytest.mark.timeout(3600)
def test_a_thousand_expressways_at_full_speed(benchmark, report: Report, tmp_path: Path) -> None:
    named = os.environ.get("XSTREAM_TRAFFIC")
    if not named:
        pytest.skip("needs XSTREAM_TRAFFIC, generated expressways with history")
    base, expressways = Path(named), int(os.environ.get("XSTREAM_L", "1000"))
    originals = prepare(base, checked_base(base), tmp_path / "reference", 10, print)

    def run() -> dict[str, object]:
        command = [
            *("linearroad", "run", "--input", str(base), "--history", str(base)),
            *("--expressways", str(expressways), "--threads", str(WORKERS), "--answers", "digest"),
            *("--from-state", str(originals.state), "--out", str(tmp_path / "out")),
        ]
        call(command, print)
        found: dict[str, object] = json.loads((tmp_path / "out" / "summary.json").read_text())
        return found

    pace = memory_pace()
    found = benchmark.pedantic(run, rounds=1, iterations=1)
    assert found["copies_differ"] == 0
    millions = found["reports_per_second"] / 1e6
    allowed = pace / MOVED_BYTES / 1e6
    report.figure(
        f"Linear Road, L = {expressways:,}, the last ten minutes", f"{millions:.2f} M reports/s",
        f"memory alone would allow {allowed:.0f} ({pace / 1e9:.1f} GB/s)",
        f"{millions / allowed:.2f}", f">= {LEAST_MILLIONS} M/s", millions >= LEAST_MILLIONS,
    )  # fmt: skip
    gib = found["peak_memory_bytes"] / 2**30
    report.figure(
        "its memory at the peak", f"{gib:.2f} GiB", "", "", f"<= {MOST_GIB} GiB", gib <= MOST_GIB
    )
    stages = found["stage_ns"]
    whole = sum(stages.values())
    lines = [[name, f"{ns:.1f}", f"{ns / whole:.0%}"] for name, ns in stages.items()]
    report.table("a report's nanoseconds, by stage", ["stage", "ns", "share"], lines)
