"""Figure 7: offered load for the four schedulers, without and with rate control (section III.C.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from detectaudio.detector import Detector
from detectaudio.query import declare, sources
from detectaudio.recording import Recording, generate

import xstream as xs
from xstream.bench.experiment import Experiment, Finding, Plot, Row, Scale, summary
from xstream.bench.queries import Engine
from xstream.bench.report import Figure
from xstream.bench.wording import listed

WINDOW = 4096
BURST = 64
#: Offered, in multiples of what the depth-first scheduler serves at its best.
LOADS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Throughput over FIFO's with rate control, in the paper.
PAPERS_GAIN = {"fifo": 1.0, "fifo-slice": 1.11, "rtc": 1.20, "df": 1.51}


@dataclass(frozen=True, slots=True)
class Served:
    """One run under an offered load."""

    samples: int
    wall_seconds: float
    processor_samples_per_second: float
    queued_tuples: int
    memory_bytes: int


def serve(
    recording: Recording, repeat: int, scheduler: str, burst: int | None, offered_hz: float | None
) -> Served:
    """DETECTAUDIO, its four channels offered at a rate together."""
    query = xs.Query("detectaudio")
    each = None if offered_hz is None else offered_hz / len(recording.channels)
    channels = sources(query, recording, WINDOW, repeat, each)
    declare(channels, recording.rate_hz, Detector(block=WINDOW)).count()
    run, trial = Engine(scheduler, "refcount-lazy", burst, "processor").timed_run(query)
    return Served(
        run.source_samples,
        run.wall_seconds,
        trial.samples_per_second,
        max(stats.queue_peak for stats in run.stats.values()),
        run.queue_bytes_peak + run.memory.peak_bytes,
    )


def measure(scale: Scale) -> Iterator[Row]:
    """Every scheduler at every load, controlled and not, in turns."""
    recording = generate(seconds=10.0, events=4)
    serve(recording, 1, "df", BURST, None)
    probe = serve(recording, 4, "df", BURST, None)
    # A run is long enough for queues to build up: a few times a trial of the other experiments.
    repeat = max(2, round(4 * scale.seconds * 4 / probe.wall_seconds))
    capacity = max(
        found.samples / found.wall_seconds
        for found in (serve(recording, repeat, "df", BURST, None) for _ in range(3))
    )
    scale.progress.begin(scale.trials * len(xs.SCHEDULER_NAMES) * 2 * len(LOADS), "run")
    for trial in range(scale.trials):
        for scheduler in xs.SCHEDULER_NAMES:
            for burst in (BURST, None):
                for load in LOADS:
                    found = serve(recording, repeat, scheduler, burst, load * capacity)
                    scale.progress.advance(note=scheduler)
                    yield {
                        "scheduler": scheduler, "memory": "refcount-lazy", "window": WINDOW,
                        "rate_control": "with" if burst else "without",
                        "tuple_burst": burst or 0, "load": load,
                        "offered_samples_per_second": load * capacity, "trial": trial,
                        "samples": found.samples,
                        "samples_per_second": found.samples / found.wall_seconds,
                        "processor_samples_per_second": found.processor_samples_per_second,
                        "queued_tuples": found.queued_tuples,
                        "memory_mb": found.memory_bytes / 1e6,
                    }  # fmt: skip


def find(rows: Sequence[Row]) -> Finding:
    """Flat with rate control? And in which order?"""
    by = ["rate_control", "scheduler", "load"]
    served, work = summary(rows, by), summary(rows, by, "processor_samples_per_second")
    queued, memory = summary(rows, by, "queued_tuples"), summary(rows, by, "memory_mb")
    most = LOADS[-1]
    figures = []
    for name in xs.SCHEDULER_NAMES:
        top = max(work["with", name, load][0] for load in LOADS if load >= 1)
        share = work["with", name, most][0] / top
        what = f"{name}, controlled: at {most:g} x the load, of its peak"
        figures.append(Figure(what, share, "times", floor=0.9 if name == "df" else None))
        share = work["without", name, most][0] / work["with", name, most][0]
        figures.append(Figure(f"{name}, not controlled, over controlled there", share, "times"))
    fifo = work["with", "fifo", most][0]
    for name, gain in PAPERS_GAIN.items():
        if name != "fifo":
            what = f"{name} over fifo, controlled (paper {gain:g})"
            figures.append(Figure(what, work["with", name, most][0] / fifo, "times"))
    table = [
        (control, name, f"{load:g}", f"{served[control, name, load][0] / 1e6:,.0f}",
         f"{served[control, name, load][1] / 1e6:,.0f}",
         f"{work[control, name, load][0] / 1e6:,.0f}",
         f"{queued[control, name, load][0]:,.0f}", f"{memory[control, name, load][0]:,.1f}")
        for control in ("with", "without") for name in xs.SCHEDULER_NAMES for load in LOADS
    ]  # fmt: skip
    columns = ("rate control", "scheduler", "load", "Msamples/s", "± 95 %",
               "by processor time", "queued tuples", "memory, MB")  # fmt: skip
    keeps = {n: work["without", n, most][0] / work["with", n, most][0] for n in xs.SCHEDULER_NAMES}
    grown = {n: memory["without", n, most][0] for n in xs.SCHEDULER_NAMES}
    top = {
        n: max(work["with", n, load][0] for load in LOADS if load >= 1) for n in xs.SCHEDULER_NAMES
    }
    falling = [n for n in xs.SCHEDULER_NAMES if work["with", n, most][0] < 0.9 * top[n]]
    flat = "under every scheduler, as in the paper" if not falling else (
        f"except under {listed([f'`{n}`' for n in falling])}; in the paper it is flat under every scheduler"
    )  # fmt: skip
    served_there = [work["with", n, most][0] for n in xs.SCHEDULER_NAMES]
    apart, papers = max(served_there) / min(served_there), max(PAPERS_GAIN.values())
    text = f"""
With rate control throughput is flat beyond what can be served, {flat}. Without it, whatever has
arrived waits in the queues: {queued["without", "fifo", most][0]:,.0f} tuples under `fifo` at {most:g} times the load, and more the longer the run.

What that costs depends on what a scheduler does with a long queue. `rtc` and `fifo-slice` drain it into the next one: blocks
become spectra before the first score is taken, {grown["rtc"]:.0f} and {grown["fifo-slice"]:.0f} MB of them against {grown["df"]:.0f} under `df`. Without control they keep
{keeps["rtc"]:.2f} and {keeps["fifo-slice"]:.2f} of their throughput here, by processor time; other runs have kept anything from half to nearly all, since it is the
shared cache that decides, and what else uses it. `fifo` and `df` take one tuple through at a time, queue eight bytes and a count for each, and keep
{keeps["fifo"]:.2f} and {keeps["df"]:.2f}. The paper's lost under all four, because each queued tuple of its engine was allocated on a heap that grew and shrank.

With rate control the best scheduler is {apart:.2f} times as fast as the worst at that load, and {papers:g} times in the paper. A segment of {WINDOW:,} samples
costs microseconds in the detector and a hop between operators nanoseconds, queued or not.
`xstream bench enginebench`, in which nothing but hops is left, shows what the schedulers differ in.

Samples a second are those of the wall clock, so that a busy machine lowers them; the column by processor time
counts what the run itself used, and naps between arrivals are none of it.
"""
    return Finding(figures, columns, table, text)


def _plot(control: str, letter: str) -> Plot:
    return Plot(
        f"({letter}) {control} rate control", "load", "samples_per_second", ("scheduler",),
        "Msamples/s served", "offered load, in multiples of what df serves",
        {"rate_control": control}, log_x=True, scale=1e-6,
    )  # fmt: skip


EXPERIMENT = Experiment(
    "fig7",
    "Figure 7: offered load under four schedulers, without and with rate control",
    """
DETECTAUDIO while more and more is offered (section III.C.3). Without rate control throughput drops once the load
is more than can be served: queues build up, and allocating for them burdens the virtual memory manager. With it
every scheduler's response is flat. FIFO tops out at about 4.5 million samples/s, FIFO-Slice is 11 % better, RTC
20 %, and DF 51 %.
""",
    measure,
    (_plot("without", "a"), _plot("with", "b")),
    find,
)
