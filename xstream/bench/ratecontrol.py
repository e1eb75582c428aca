"""Rate control: throughput and memory under overload (Figure 7)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from xstream import io
from xstream.bench import _kernels
from xstream.bench._resident import ResidentPeak
from xstream.bench.queries import Engine, Statfilter
from xstream.bench.recording import read_recording, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import Result, Trial
from xstream.errors import InputError
from xstream.query import Query

__all__ = ["ratecontrol"]

#: Offered loads as multiples of the capacity, and lengths of runs.
_LOADS = (0.5, 1.0, 2.0, 5.0, 10.0)
_LENGTHS = (1, 4)
_BURST = 64


@dataclass(frozen=True, slots=True)
class _Served:
    """A run under an offered load."""

    trial: Trial
    wall_seconds: float
    queued_tuples: int
    #: Peak of the memory of queues and segments.
    peak_bytes: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class _Load:
    """Run STATFILTER over a recording that is offered at a given rate."""

    settings: Settings
    work: Statfilter
    passing: int

    def serve(self, repeat: int, burst: int | None, offered_hz: float | None) -> _Served:
        work, settings = self.work, self.settings
        query = Query("ratecontrol")
        source = io.array(
            work.recording, work.rate_hz, work.window, repeat=repeat, offered_hz=offered_hz
        )
        stream = query.source(source).filter(_kernels.louder, work.alpha)
        out = stream.filter(_kernels.lower, work.beta).count()
        resident = ResidentPeak()
        engine = Engine(settings.scheduler, settings.memory, burst, settings.clock)
        run, trial = engine.timed_run(query)
        if run[out].samples != self.passing * repeat:
            raise AssertionError(
                f"{run[out].samples:,} samples came out, not {self.passing * repeat:,}"
            )
        return _Served(
            trial,
            run.wall_seconds,
            max(stats.queue_peak for stats in run.stats.values()),
            run.queue_bytes_peak + run.memory.peak_bytes,
            resident.grown(),
        )


def ratecontrol(settings: Settings) -> Report:
    """Offer up to ten times the capacity, with and without rate control."""
    if settings.scheduler == "all":
        raise InputError("ratecontrol takes one --scheduler")
    samples, rate_hz = read_recording(settings.input)
    recording = whole_windows(samples, settings.window)
    work = Statfilter(recording, settings.window, rate_hz, alpha=settings.alpha, beta=settings.beta)
    load = _Load(settings, work, len(work.reference()))
    repeat, capacity_hz = _capacity(load, settings)
    found: dict[tuple[int | None, float, int], list[_Served]] = defaultdict(list)
    settings.progress.begin(settings.trials * len(_LENGTHS) * 2 * len(_LOADS), "run")
    for _ in range(
        settings.trials
    ):  # in turns, so that other load on the machine affects all alike
        for times in _LENGTHS:
            for burst in (_BURST, None):
                for multiple in _LOADS:
                    served = load.serve(repeat * times, burst, multiple * capacity_hz)
                    found[burst, multiple, times].append(served)
                    settings.progress.advance()
    return _report(settings, found, repeat * len(recording))


def _capacity(load: _Load, settings: Settings) -> tuple[int, float]:
    """Return the repetitions of the recording in a short run, and the capacity in samples/s."""
    settings.progress.advance(note="measuring the capacity")
    load.serve(1, _BURST, None)
    probe = load.serve(20, _BURST, None)
    repeat = max(2, round(20 * settings.seconds / probe.wall_seconds))
    tries = [load.serve(repeat, _BURST, None) for _ in range(settings.trials)]
    samples = repeat * len(
        load.work.recording
    )  # offered by the wall clock, whichever clock measures
    return repeat, max(samples / served.wall_seconds for served in tries)


def _report(
    settings: Settings, found: dict[tuple[int | None, float, int], list[_Served]], samples: int
) -> Report:
    def speed(burst: int | None, load: float, *lengths: int) -> float:
        tries = (served for times in lengths for served in found[burst, load, times])
        return max(served.trial.samples_per_second for served in tries)

    def peak(burst: int | None, load: float, times: int) -> int:
        return max(served.peak_bytes for served in found[burst, load, times])

    most = _LOADS[-1]
    best = Result(
        f"at {most:g} times the load",
        tuple(served.trial for times in _LENGTHS for served in found[_BURST, most, times]),
    )
    report = Report("ratecontrol", settings.to_json(), [best])
    report.checked = "the number of samples that passed in each run, against numpy"
    rows: list[tuple[Any, ...]] = []
    for (burst, load, times), tries in sorted(
        found.items(), key=lambda item: (item[0][0] is None, item[0][1:])
    ):
        rows.append((
            "off" if burst is None else burst, f"{load:g}", f"{samples * times / 1e6:,.0f} M",
            f"{speed(burst, load, times) / 1e9:.2f}",
            f"{max(served.queued_tuples for served in tries):,}",
            f"{peak(burst, load, times) / 1e6:.1f}",
            f"{max(served.resident_bytes for served in tries) / 1e6:.1f}",
        ))  # fmt: skip
    columns = ("tuple_burst", "load", "samples", "Gsamples/s", "queued tuples",
               "queues and segments, MB", "process grew, MB")  # fmt: skip
    report.tables.append(("offered load, in multiples of the capacity", columns, rows))
    for burst, name in ((_BURST, "controlled"), (None, "not controlled")):
        top = max(speed(_BURST, load, *_LENGTHS) for load in _LOADS)
        share = speed(burst, most, *_LENGTHS) / top
        floor, ceiling = (0.95, 1.05) if burst else (None, None)
        report.figures.append(
            Figure(f"of peak throughput at {most:g} x the load, {name}", share, "times", floor)
        )
        growth = peak(burst, most, _LENGTHS[-1]) / peak(burst, most, 1)
        what = f"memory of a run {_LENGTHS[-1]} x as long, {name}"
        report.figures.append(Figure(what, growth, "times", ceiling=ceiling))
    return report
