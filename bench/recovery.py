"""The cost of checkpoints: `python -m bench.recovery`.

DETECTAUDIO runs with and without a checkpoint every ten seconds, in turns: each run with them is
compared with the run beside it, and the order changes from pair to pair, so that a machine that
becomes faster or slower counts on both sides. CPU seconds of the process and of the children that
write are compared as well.

For Linear Road the summary of `xstream linearroad run --checkpoint-s 10` has the figures.
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

#: A run has two checkpoints.
SECONDS, PAIRS, EVERY_S = 21.0, 5, 10.0


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
    """Print the seconds of each trial and the median of the overheads of all pairs."""
    measured(1, None)
    repeat = max(int(20 * SECONDS / measured(20, None)[0]), 1)
    wall: dict[bool, list[float]] = {False: [], True: []}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(PAIRS):
        for taken in (False, True) if pair % 2 else (True, False):
            with tempfile.TemporaryDirectory() as folder:
                seconds, used, run = measured(repeat, folder if taken else None)
            wall[taken].append(seconds)
            cpu[taken].append(used)
            print(f"{'with' if taken else 'without'}: {seconds:.2f} s, {used:.2f} CPU s, "
                  f"{run.checkpoints}", flush=True)  # fmt: skip
    for name, both in (("wall", wall), ("CPU", cpu)):
        overheads = [100 * (a / b - 1) for a, b in zip(both[True], both[False], strict=True)]
        best = 100 * (min(both[True]) / min(both[False]) - 1)
        print(
            f"{name}: {statistics.median(overheads):+.1f} % at the median of {PAIRS} pairs, best "
            f"against best {best:+.1f} %, with a checkpoint every {EVERY_S:g} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
