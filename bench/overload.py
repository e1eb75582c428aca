"""Three times more input than a query can take: `python -m bench.overload`.

DETECTAUDIO runs at full speed, which gives its peak, and then with samples that arrive three times
as fast, for `--seconds`. Under overload the memory must stay, the throughput must be the peak's,
and the lateness must be what the clock says: after t seconds, samples are late by 2/3 t.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import dataclass

import psutil
from detectaudio import declare, generate
from detectaudio.query import SEGMENT

import xstream as xs

OVERLOAD = 3.0
#: The peak is that of the best of so many parts of the run at full speed.
PARTS = 5


class Watch:
    """Notes samples and memory while a query runs, and stops it."""

    def __init__(self, seconds: float) -> None:
        self._begin, self._seconds = 0.0, seconds
        self._process = psutil.Process()
        self.stop = threading.Event()
        self.notes: list[tuple[float, int, int]] = []

    def __call__(self, run: xs.Run) -> None:
        self._begin = self._begin or time.perf_counter()
        at = time.perf_counter() - self._begin
        self.notes.append((at, run.source_samples, self._process.memory_info().rss))
        if at >= self._seconds:
            self.stop.set()

    def rate(self, begin: float, end: float) -> float:
        """Samples per second between two shares of the time."""
        within = [
            note for note in self.notes if begin <= note[0] / self._seconds <= end
        ]  # fmt: skip
        (first_s, first, _), (last_s, last, _) = within[0], within[-1]
        return (last - first) / (last_s - first_s)

    @property
    def memory(self) -> tuple[int, int]:
        """The memory after a tenth of the time, when all is allocated, and the most of it."""
        begin = next(rss for at, _, rss in self.notes if at >= self._seconds / 10)
        return begin, max(rss for _, _, rss in self.notes)


def watched(seconds: float, speed: float | None) -> tuple[Watch, xs.Run, float]:
    """Run the query for some time; with a speed, samples arrive that much faster than recorded.

    The last value is the number of samples per second that would be recorded.
    """
    recording = generate(seconds=20.0, events=4, snr_db=20.0, seed=3)
    query = xs.Query("detectaudio")
    channels = []
    for samples in recording.channels:
        source = xs.io.array(samples, recording.rate_hz, window=SEGMENT, repeat=None)
        channels.append(query.source(source if speed is None else xs.io.paced(source, speed)))
    declare(channels, recording.rate_hz).count()
    watch = Watch(seconds)
    run = query.run(progress=watch, stop=watch.stop)
    return watch, run, len(channels) * recording.rate_hz


@dataclass(frozen=True)
class Overload:
    """What came of an overload: rates in samples per second, memory in bytes."""

    peak: float
    rate: float
    memory: tuple[int, int]
    elapsed_s: float
    #: The worst lateness that the run reports, and what it must be by the clock.
    lateness_s: tuple[float, float]

    @property
    def is_honest(self) -> bool:
        """Whether the reported lateness is that of the clock."""
        reported, true = self.lateness_s
        return abs(reported - true) <= 0.05 * true + 0.2


def overloaded(seconds: float) -> Overload:
    """Measure the peak, then run with three times as much."""
    watched(1.0, None)  # compiled and loaded
    plain, _, recorded_hz = watched(max(seconds / 4, 3.0), None)
    peak = max(plain.rate(part / PARTS, (part + 1) / PARTS) for part in range(PARTS))
    under, run, _ = watched(seconds, OVERLOAD * peak / recorded_hz)
    late = max(stats.lateness.worst_ns / 1e9 for stats in run.stats.values() if stats.lateness)
    elapsed, samples, _ = under.notes[-1]
    true = elapsed - samples / (OVERLOAD * peak)
    return Overload(peak, under.rate(0.1, 1.0), under.memory, elapsed, (late, true))


def main() -> int:
    """Print the figures; 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the overload")
    found = overloaded(parser.parse_args().seconds)
    ratio, (before, most) = found.rate / found.peak, found.memory
    print(f"peak: {found.peak / 1e6:.1f} million samples/s; {OVERLOAD:g} times as many arrive")
    print(f"throughput under overload: {ratio:.3f} of the peak (floor 0.95)")
    print(f"memory: {before / 2**20:.1f} MiB, at most {most / 2**20:.1f} MiB, "
          f"{100 * (most / before - 1):+.1f} % (limit +10 %)")  # fmt: skip
    reported, true = found.lateness_s
    print(f"lateness after {found.elapsed_s:.1f} s: {reported:.2f} s reported, {true:.2f} s true")
    return int(ratio < 0.95 or most > 1.1 * before or not found.is_honest)


if __name__ == "__main__":
    sys.exit(main())
