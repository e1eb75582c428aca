"""The cost of a plain Python operator per tuple."""

from __future__ import annotations

from xstream.bench.contender import contender
from xstream.bench.queries import Passchain
from xstream.bench.recording import read_recording, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import interleave

__all__ = ["pythonop"]

_CEILING_US = 2.0
#: Name, whether tuples are segments, kind of operator.
_WAYS = (
    ("Python, one segment per tuple", True, "python"),
    ("Python, two numbers per tuple", False, "python"),
    ("compiled, one segment per tuple", True, "kernel"),
)


def pythonop(settings: Settings) -> Report:
    """Measure a Python callable in `map`, over segments and over plain numbers."""
    samples, rate_hz = read_recording(settings.input)
    recording = whole_windows(samples, settings.window)
    contenders = {}
    for name, segments, kind in _WAYS:
        chain = Passchain(recording, settings.window, rate_hz, settings.operators, kind, segments)
        contenders[name] = contender(settings, chain)
    results = interleave(contenders, settings.trials, settings.progress)
    report = Report("pythonop", settings.to_json(), list(results.values()))
    report.checked = "every sample that came out of one pass, and their number in each trial"
    for name, segments, kind in _WAYS:
        width = settings.window if segments else 1
        us = width * 1e6 / results[name].samples_per_second / settings.operators
        ceiling = _CEILING_US if kind == "python" else None
        report.figures.append(Figure(name, us, "µs a tuple and operator", ceiling=ceiling))
    return report
