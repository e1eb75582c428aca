"""Nothing is left behind: memory, file descriptors, threads, blocks of segments."""

from __future__ import annotations

import gc
import os
import random
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest

import xstream as xs
from tests.fresh import in_fresh_process
from tests.recovery.graphs import GRAPHS
from tests.recovery.interrupted import interrupted_run


def kept_of_runs(folder: str) -> dict[str, int]:
    """What thirty-four rounds of interrupted and resumed runs leave behind."""

    def once() -> None:
        for name in ("rewindow", "sync", "cycle"):
            interrupted_run(GRAPHS[name]()[0], 12, Path(folder) / name)
            GRAPHS[name]()[0].run(tuple_burst=4, checkpoint=Path(folder) / name, resume=True)

    def held() -> dict[str, int]:
        gc.collect()
        process = psutil.Process()
        return {
            "files": len(os.listdir("/proc/self/fd")), "threads": threading.active_count(),
            "bytes": process.memory_info().rss, "children": len(process.children()),
        }  # fmt: skip

    for _ in range(10):  # compiles, and fills caches
        once()
    before = held()
    for _ in range(34):
        once()
    after = held()
    return {what: after[what] - before[what] for what in after}


@pytest.mark.slow
def test_interrupted_and_resumed_runs_leave_nothing_behind(tmp_path: Path) -> None:
    kept = in_fresh_process(kept_of_runs, str(tmp_path))
    assert kept.pop("bytes") < 8 << 20
    assert kept == {"files": 0, "threads": 0, "children": 0}


@pytest.mark.slow
@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_a_million_operations_of_four_threads_leave_no_block(memory: str) -> None:
    manager = xs.memory_manager(memory)
    shared = [xs.SigSeg(np.arange(64.0), memory=manager) for _ in range(16)]

    def work(seed: int) -> None:
        chance = random.Random(seed)
        own = list(shared)
        for _ in range(62_500):  # a quarter of a million for each manager
            at = chance.randrange(len(own))
            segment = own[at]
            kind = chance.randrange(5)
            if kind == 0 and segment.width > 2:
                own[at] = segment.subseg(segment.start + 1, segment.width - 2)
            elif kind == 1 and segment.width < 4096:
                more = xs.SigSeg(np.zeros(8), start=segment.stop, memory=manager)
                own[at] = segment.append(more)
            elif kind == 2:
                own[at] = segment.share()
            elif kind == 3:
                np.asarray(segment).sum()
            else:
                own[at] = chance.choice(shared)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.clear()
    gc.collect()
    assert manager.stats().live_blocks == 0
