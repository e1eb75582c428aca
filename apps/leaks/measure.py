"""`xstream bench pipeline`: samples per second of PIPELINE."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaks.pressure import Pressure
    from xstream.bench.report import Report
    from xstream.bench.settings import Settings
    from xstream.query import Query, SinkRef

__all__ = ["benchmark", "pipeline"]

#: Throughput of XStream in the paper (section II), in samples/s.
PAPERS_SAMPLES_PER_SECOND = 4.3e6
FLOOR_MSAMPLES = 60.0


def pipeline(query: Query, pressure: Pressure, window: int, repeat: int) -> SinkRef:
    """Declare PIPELINE over a recording in segments of `window` samples."""
    import xstream as xs
    from leaks.query import declare

    source = xs.io.array(pressure.samples, pressure.rate_hz, window=window, repeat=repeat)
    return declare(query.source(source, name="pressure")).count()


def benchmark(settings: Settings) -> Report:
    """Measure PIPELINE (section II.A): Haar wavelets over overlapping windows."""
    from leaks.outcome import SURE_DB, evaluate
    from leaks.pressure import generate, read
    from leaks.query import find
    from xstream.bench.application import Form, measure_forms
    from xstream.bench.report import Figure, Report

    pressure = generate(snr_db=(SURE_DB, 50.0)) if settings.input is None else read(settings.input)
    outcome = evaluate(pressure, find(pressure, None, settings.scheduler, settings.memory))
    if settings.input is None and (outcome.missed or outcome.false_alarms):
        raise AssertionError(f"pipeline: {outcome.to_json()}")
    form = Form("pipeline", lambda q, n: pipeline(q, pressure, settings.window, n))
    results = measure_forms(settings, {"pipeline": (form, settings.engine)}, len(pressure.samples))
    report = Report("pipeline", settings.to_json(), list(results.values()))
    report.checked = (
        f"the {len(pressure.leaks)} known leaks among {len(pressure.transients)} transients, all "
        "of them and nothing else, and the number of tuples in each trial"
    )
    reached = results["pipeline"].samples_per_second
    report.figures = [
        Figure("of one sensor", reached / 1e6, "Msamples/s", FLOOR_MSAMPLES),
        Figure("against the paper's", reached / PAPERS_SAMPLES_PER_SECOND, "times"),
    ]
    return report
