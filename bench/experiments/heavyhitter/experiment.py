"""The case in which depth-first scheduling loses (sections III.C.3 and IV.B.4).

Four channels are unpacked into single samples, each window into 4,096 tuples, and joined on their
timestamps: DETECTAUDIO with `join`, without its detector. The larger the burst that rate control
admits, the more rows of one channel are in a table before the next channel is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

import xstream as xs
from xstream.bench._resident import ResidentPeak
from xstream.bench.experiment import Experiment, Finding, Plot, Row, Scale, best, summary
from xstream.bench.phrases import change, listed
from xstream.bench.queries import Engine
from xstream.bench.report import Figure

from .kernels import unpack

NAMES = xs.SCHEDULER_NAMES
CHANNELS = 4
WINDOW = 4096
BURSTS = (1, 4, 16, 64, 256)
MOST = BURSTS[-1]
RATE_HZ = 48_000.0


@dataclass(frozen=True, slots=True)
class Joined:
    """The speed and the memory of one run."""

    samples_per_second: float
    queue_bytes: int
    resident_bytes: int


def join(samples: npt.NDArray[np.float32], scheduler: str, burst: int, clock: str) -> Joined:
    """Join four channels of the same samples on their timestamps."""
    query = xs.Query("heavyhitter")
    channels = [
        query.source(xs.io.array(samples, RATE_HZ, WINDOW), name=f"channel {number}")
        for number in range(CHANNELS)
    ]
    rows = [channel.iterate(unpack) for channel in channels]
    joined = rows[0]
    for other in rows[1:]:
        joined = joined.join(other, unique=True)
    out = joined.count()
    resident = ResidentPeak()
    run, trial = Engine(scheduler, "refcount-lazy", burst, clock, fuse=False).timed_run(query)
    if run[out] != len(samples):
        raise AssertionError(f"{run[out]:,} rows were joined, not {len(samples):,}")
    return Joined(trial.samples_per_second, run.queue_bytes_peak, resident.grown())


def measure(scale: Scale) -> Iterator[Row]:
    """Every scheduler with every burst, in alternation."""
    windows = MOST if scale.full else 64
    samples = np.random.default_rng(7).normal(size=windows * WINDOW).astype(np.float32)
    join(samples[:WINDOW], "df", 1, scale.clock)  # compiled before the first trial
    points = [(n, burst) for n, burst in product(NAMES, BURSTS) if burst <= windows]
    scale.progress.begin(len(scale.pending) * len(points), "run")
    for trial in scale.pending:
        for scheduler, burst in points:
            found = join(samples, scheduler, burst, scale.clock)
            scale.progress.advance(note=f"{scheduler}, {burst} windows")
            yield {
                "scheduler": scheduler, "memory": "refcount-lazy", "window": WINDOW,
                "tuple_burst": burst, "trial": trial, "samples": CHANNELS * len(samples),
                "samples_per_second": found.samples_per_second,
                "queue_mb": found.queue_bytes / 1e6, "resident_mb": found.resident_bytes / 1e6,
            }  # fmt: skip


def find(rows: Sequence[Row]) -> Finding:
    """The bursts with which df is slower than fifo."""
    by = ["scheduler", "tuple_burst"]
    means, top = summary(rows, by), best(rows, by)
    queues, resident = summary(rows, by, "queue_mb"), summary(rows, by, "resident_mb")
    bursts = sorted({burst for _, burst in top})
    most = bursts[-1]
    over_fifo = {burst: top["df", burst] / top["fifo", burst] for burst in bursts}
    figures = [
        Figure(f"df over fifo, {burst} windows per burst", ratio, "times")
        for burst, ratio in over_fifo.items()
    ]
    name = f"memory of df over fifo's, {most} windows per burst"
    figures.append(Figure(name, resident["df", most][0] / resident["fifo", most][0], "times"))
    table = [
        (name, burst, f"{mean / 1e6:,.2f}", f"{half / 1e6:,.2f}", f"{queues[name, burst][0]:,.1f}",
         f"{resident[name, burst][0]:,.1f}")
        for (name, burst), (mean, half) in means.items()
    ]  # fmt: skip
    columns = ("scheduler", "windows per burst", "Msamples/s", "± 95 %", "queues, MB",
               "process grew, MB")  # fmt: skip
    losing = [burst for burst in bursts if over_fifo[burst] < 0.97]
    fastest = max(NAMES, key=lambda n: top[n, most])
    where = f"`df` loses to `fifo` with {listed([str(b) for b in losing])} windows per burst" if losing else (
        "`df` does not lose to `fifo` in this run, unlike in the paper"
    )  # fmt: skip
    ratios = listed([f"{change(over_fifo[b])} with {b}" for b in (bursts[0], most)])
    text = f"""
{where}. Against `fifo`, `df` is {ratios}. With {most} windows per burst
`{fastest}` is the fastest scheduler.

A window of {WINDOW:,} samples becomes {WINDOW:,} tuples in `unpack`, and a burst of {most} windows {most * WINDOW:,} tuples of every channel. `df` calls the join for
each of them immediately, so all rows of a channel are in a hash table before the first row of the next channel arrives. No queue
grows ({queues["df", most][0]:,.0f} MB), but the tables do: the process grows by {resident["df", most][0]:,.0f} MB. `fifo` takes one tuple of each
queue in turn. The rows wait in its queues ({queues["fifo", most][0]:,.0f} MB), the channels are joined row by row, and the tables stay small enough for the cache; the process
grows by {resident["fifo", most][0]:,.0f} MB. `rtc` and `fifo-slice` drain a queue before they turn to the next one, so both queues ({queues["rtc", most][0]:,.0f} and {queues["fifo-slice", most][0]:,.0f} MB) and tables grow.
The remedy is a small burst: `df` reaches {top["df", bursts[0]] / 1e6:,.1f} million samples/s with one window per burst and {top["df", most] / 1e6:,.1f} million with {most}.
"""
    return Finding(figures, columns, table, text)


def _plot(title: str, value: str, unit: str, scale: float) -> Plot:
    return Plot(
        title, "tuple_burst", value, ("scheduler",), unit, "windows admitted in a burst", {},
        log_x=True, scale=scale,
    )  # fmt: skip


EXPERIMENT = Experiment(
    "heavyhitter",
    "Where depth-first loses: an operator with much output before a join",
    """
DF performs best in most benchmarks, but there are rare cases in which it does not (section III.C.3). Some applications have
"heavy-hitter" operators that generate a lot of output, which must be scheduled sparingly and whose output must be consumed quickly. FIFO
schedules the operators more uniformly and avoids spikes of memory. The case is DETECTAUDIO with a hash join (section IV.B.4): schedulers that enter
the data into the hash tables more rapidly, such as RTC and DF, expand the tables more than FIFO, which serves the input queues more evenly.
""",
    measure,
    (
        _plot("Four channels unpacked and joined", "samples_per_second", "Msamples/s", 1e-6),
        _plot("Growth of the process", "resident_mb", "MB", 1.0),
    ),
    find,
)
