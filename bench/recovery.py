"""The cost of checkpoints: `python -m bench.recovery`.

DETECTAUDIO runs with and without a checkpoint every ten seconds, in turns. CPU seconds of the
process and of the children that write are compared as well, because a busy machine changes them
less. For Linear Road the summary of `xstream linearroad run --checkpoint-s 10` has the figures.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time

from detectaudio import declare, generate
from detectaudio.query import sources

import xstream as xs

SECONDS, TRIALS, EVERY_S = 25.0, 2, 10.0


def spent() -> float:
    """CPU seconds of this process and of children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measured(repeat: int, folder: str | None) -> tuple[float, float, xs.Run]:
    """Wall-clock seconds, CPU seconds, and the run."""
    recording = generate(seconds=20.0, events=4, snr_db=20.0, seed=3)
    query = xs.Query("detectaudio")
    out = declare(sources(query, recording, repeat=repeat), recording.rate_hz).count()
    cpu, begin = spent(), time.perf_counter()
    run = query.run(checkpoint=folder, checkpoint_s=EVERY_S)
    assert run[out]
    return time.perf_counter() - begin, spent() - cpu, run


def main() -> int:
    """Print the seconds of each trial and the overhead of the medians."""
    measured(1, None)
    repeat = max(int(20 * SECONDS / measured(20, None)[0]), 1)
    wall: dict[bool, list[float]] = {False: [], True: []}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(TRIALS):
        for taken in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                seconds, used, run = measured(repeat, folder if taken else None)
            wall[taken].append(seconds)
            cpu[taken].append(used)
            print(f"{'with' if taken else 'without'}: {seconds:.2f} s, {used:.2f} CPU s, "
                  f"{run.checkpoints}", flush=True)  # fmt: skip
    for name, both in (("wall", wall), ("CPU", cpu)):
        plain, with_them = (statistics.median(both[taken]) for taken in (False, True))
        print(
            f"{name}: {100 * (with_them / plain - 1):+.1f} % with a checkpoint every {EVERY_S:g} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
