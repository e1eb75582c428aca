"""PASSCHAIN, STATFILTER and SILENCEFILTER of Table I (section IV.A), each with NoSigSeg."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.bench.contender import contender
from xstream.bench.queries import Declared, Passchain, Silencefilter, Statfilter
from xstream.bench.recording import read_recording, tiled, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import Result, Stopwatch, Trial, interleave

__all__ = ["passchain", "silencefilter", "statfilter"]

_SAMPLES_A_TUPLE = "NoSigSeg, one tuple per sample"
_FUSED, _NOT_FUSED = "NoSigSeg, fused kernels", "NoSigSeg, kernels with fuse=False"
_SAMPLES_A_CALL = 100_000_000
_CHECKED = "every sample that came out of one pass, and their number in each trial, against numpy"


def _declare(settings: Settings, what: type[Declared], **changes: Any) -> Declared:
    samples, rate_hz = read_recording(settings.input)
    how: dict[str, Any] = {
        "recording": whole_windows(samples, settings.window), "window": settings.window,
        "rate_hz": rate_hz, "operators": settings.operators, "kind": settings.kind,
        "alpha": settings.alpha, "beta": settings.beta,
    }  # fmt: skip
    return what(**{**how, **changes})


def _nosigseg(settings: Settings, what: type[Declared]) -> dict[str, Callable[[], Trial]]:
    """One tuple per sample; where fusion takes effect, also as kernels with it and without."""
    declared = _declare(settings, what, segments=False, kind="library")
    found = {_SAMPLES_A_TUPLE: contender(settings, declared)}
    if settings.scheduler == "df" and settings.memory != "copy-always":
        kernels = replace(declared, kind="kernel")
        found[_FUSED] = contender(settings, kernels)
        found[_NOT_FUSED] = contender(settings, kernels, replace(settings.engine, fuse=False))
    return found


def _report(name: str, settings: Settings, contenders: dict[str, Callable[[], Trial]]) -> Report:
    results = interleave(contenders, settings.trials, settings.progress)
    report = Report(name, settings.to_json(), list(results.values()), checked=_CHECKED)
    nosigseg = results[_SAMPLES_A_TUPLE]
    gain = report.samples_per_second / nosigseg.samples_per_second
    report.figures.append(Figure("segments against one tuple per sample", gain, "times"))
    if _NOT_FUSED in results:
        gain = results[_FUSED].samples_per_second / results[_NOT_FUSED].samples_per_second
        report.figures.append(Figure("one tuple per sample, fused over not fused", gain, "times"))
    return report


def _add_peers(report: Report, settings: Settings, declared: Declared) -> dict[str, Result]:
    if not settings.peers:
        return {}
    from xstream.bench.peers import measure_peers

    found, missing = measure_peers(report.benchmark, declared, settings)
    report.results.extend(found.values())
    report.notes.extend(missing)
    return found


def passchain(settings: Settings) -> Report:
    """PASSCHAIN: the cost of passing data along ten operators."""
    declared = _declare(settings, Passchain)
    contenders = {f"xstream, {settings.kind} operators": contender(settings, declared)}
    for kind in ("library", "kernel"):
        if kind != settings.kind:
            other = _declare(settings, Passchain, kind=kind)
            contenders[f"xstream, {kind} operators"] = contender(settings, other)
    contenders.update(_nosigseg(settings, Passchain))
    report = _report("passchain", settings, contenders)
    for kind, floor in (("library", 20.0), ("kernel", 5.0)):
        reached = next(r for r in report.results if r.name == f"xstream, {kind} operators")
        speed = reached.samples_per_second / 1e9
        report.figures.append(Figure(f"{kind} operators", speed, "Gsamples/s", floor))
    for name, peer in _add_peers(report, settings, declared).items():
        gain = report.samples_per_second / peer.samples_per_second
        floor_of_gain = 50.0 if name.startswith("GNU Radio") else None
        report.figures.append(Figure(f"against {name}", gain, "times", floor_of_gain))
    return report


def _bare_loop(declared: Declared, repeat: int, clock: str) -> Callable[[], Trial]:
    from xstream.bench import _statistics

    samples: npt.NDArray[np.float32] = np.array(declared.recording)
    starts = np.zeros(len(samples) // declared.window, np.int64)
    wanted = len(declared.reference()) // declared.window * repeat
    # Ctrl-C is handled between calls, each of which takes a fraction of a second.
    most = max(1, _SAMPLES_A_CALL // len(samples))

    def trial() -> Trial:
        passed = 0
        with Stopwatch() as watch:
            for done in range(0, repeat, most):
                passed += _statistics.statfilter_repeated(
                    samples, declared.window, declared.alpha, declared.beta, starts,
                    min(most, repeat - done),
                )  # fmt: skip
        if passed != wanted:
            raise AssertionError(f"the bare loop let {passed:,} windows pass, not {wanted:,}")
        return watch.trial(len(samples) * repeat, clock)

    return trial


def _against_bare_loop(
    settings: Settings, where: str, declared: Declared, once: bool
) -> tuple[dict[str, Callable[[], Trial]], tuple[str, str]]:
    names = (f"xstream, {settings.kind}, {where}", f"bare numba loop, {where}")
    engine = contender(settings, declared, once=once)
    repeat = engine().samples // len(declared.recording)
    return dict(
        zip(names, (engine, _bare_loop(declared, repeat, settings.clock)), strict=True)
    ), names


def statfilter(settings: Settings) -> Report:
    """STATFILTER: two filters over windows, compared with a plain loop of the same arithmetic."""
    declared = _declare(settings, Statfilter)
    contenders, names = _against_bare_loop(settings, "in cache", declared, once=False)
    pairs = [("in cache", names)]
    if settings.megabytes:
        where = f"{settings.megabytes:g} MB"
        large = _declare(
            settings, Statfilter, recording=tiled(declared.recording, settings.megabytes)
        )
        more, names = _against_bare_loop(settings, where, large, once=True)
        contenders.update(more)
        pairs.append((where, names))
    contenders.update(_nosigseg(settings, Statfilter))
    report = _report("statfilter", settings, contenders)
    speed = {result.name: result.samples_per_second for result in report.results}
    for where, (ours, bare) in pairs:
        share = speed[ours] / speed[bare]
        report.figures.append(Figure(f"of the bare loop, {where}", share, "times", 0.97))
    for name, peer in _add_peers(report, settings, declared).items():
        gain = report.samples_per_second / peer.samples_per_second
        report.figures.append(Figure(f"against {name}", gain, "times"))
    return report


def silencefilter(settings: Settings) -> Report:
    """SILENCEFILTER: a stream joined with the ranges that a detector found in it."""
    declared = _declare(settings, Silencefilter)
    contenders = {
        "xstream": contender(settings, declared),
        "xstream, STATFILTER": contender(settings, _declare(settings, Statfilter)),
        **_nosigseg(settings, Silencefilter),
    }
    report = _report("silencefilter", settings, contenders)
    share = report.samples_per_second / report.results[1].samples_per_second
    report.figures.append(Figure("of STATFILTER", share, "times", 0.5))
    for name, peer in _add_peers(report, settings, declared).items():
        gain = report.samples_per_second / peer.samples_per_second
        report.figures.append(Figure(f"against {name}", gain, "times"))
    return report
