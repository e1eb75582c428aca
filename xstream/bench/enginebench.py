"""EngineBench: the cost of a hop between two pass-through operators (section III.C)."""

from __future__ import annotations

from xstream.bench.contender import contender
from xstream.bench.queries import Engine, Passchain
from xstream.bench.recording import read_recording, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import interleave

__all__ = ["PAPERS_RATIO", "enginebench"]

#: "the DF scheduler can be 5.8x faster than the other schedulers"
PAPERS_RATIO = 5.8
_CEILINGS_NS = {"library": 10.0, "kernel": 10.0}
_FUSED, _FUSED_CEILING_NS = "df, fused kernel operators", 2.0


def enginebench(settings: Settings) -> Report:
    """Measure 1,000 pass-through operators under each scheduler."""
    from xstream.sched import SCHEDULER_NAMES

    chosen = settings.scheduler
    every = ("df", *(name for name in SCHEDULER_NAMES if name != "df"))
    names = every if chosen == "all" else (chosen,)
    kinds = ("python",) if settings.kind == "python" else ("library", "kernel")
    samples, rate_hz = read_recording(settings.input)
    recording = whole_windows(samples, settings.window)
    contenders = {}
    for kind in kinds:
        chain = Passchain(recording, settings.window, rate_hz, settings.operators, kind)
        for name in names:
            engine = Engine(name, settings.memory, clock=settings.clock, fuse=False)
            contenders[f"{name}, {kind} operators"] = contender(settings, chain, engine)
    if "kernel" in kinds and "df" in names and settings.memory != "copy-always":
        fused = Engine("df", settings.memory, clock=settings.clock)
        contenders[_FUSED] = contender(settings, chain, fused)
    results = interleave(contenders, settings.trials, settings.progress)
    headline = results.pop(f"{names[0]}, {settings.kind} operators")
    report = Report("enginebench", settings.to_json(), [headline, *results.values()])
    report.checked = "every sample that came out of one pass, and their number in each trial"
    hop_ns = {
        result.name: settings.window * 1e9 / result.samples_per_second / settings.operators
        for result in report.results
    }
    rows: list[tuple[object, ...]] = []
    for kind in kinds:
        first_ns = hop_ns[f"{names[0]}, {kind} operators"]
        ceiling = _CEILINGS_NS.get(kind) if names[0] == "df" else None
        what = f"{names[0]}, {kind} operators"
        report.figures.append(Figure(what, first_ns, "ns a hop", ceiling=ceiling))
        for name in names:
            ns = hop_ns[f"{name}, {kind} operators"]
            paper = "1" if name == "df" else f"{PAPERS_RATIO}"
            rows.append((name, kind, f"{ns:.1f}", f"{ns / first_ns:.1f}", paper))
    if _FUSED in hop_ns:
        report.figures.append(Figure(_FUSED, hop_ns[_FUSED], "ns a hop", ceiling=_FUSED_CEILING_NS))
        rows.append(("df", "fused kernel", f"{hop_ns[_FUSED]:.1f}", "", ""))
    columns = ("scheduler", "operators", "ns a hop", f"times {names[0]}'s", "in the paper")
    report.tables.append((f"{settings.operators:,} pass-through operators", columns, rows))
    return report
