"""`xstream bench localise`: samples per second over all arrays, and errors of positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localise.scene import Scene
    from xstream.bench.report import Report
    from xstream.bench.settings import Settings
    from xstream.query import Query, SinkRef

__all__ = ["benchmark", "field"]


def field(query: Query, scene: Scene, window: int, repeat: int) -> SinkRef:
    """Declare the query over a scene that is repeated."""
    from detectaudio.detector import Detector
    from detectaudio.measure import check_window
    from detectaudio.query import sources

    from localise.query import declare

    check_window(window, scene.recordings[0])
    arrays = [
        sources(query, recording, window, repeat, label=f"array {number}, ")
        for number, recording in enumerate(scene.recordings)
    ]
    return declare(arrays, scene, Detector().in_blocks(window)).count()


def benchmark(settings: Settings) -> Report:
    """Measure acoustic localisation (section II): four arrays, bearings, positions."""
    from detectaudio.measure import check_window

    from localise.outcome import evaluate
    from localise.query import locate
    from localise.scene import generate
    from xstream.bench.application import Form, measure_forms
    from xstream.bench.report import Figure, Report
    from xstream.errors import InputError

    if settings.input is not None:
        raise InputError("localise generates its own scene: omit --input")
    scene = generate()
    check_window(settings.window, scene.recordings[0])
    outcome = evaluate(scene, locate(scene, None, settings.scheduler, settings.memory))
    if outcome.missed or outcome.false_alarms or outcome.largest_m > 1.0:
        raise AssertionError(f"localise: {outcome.to_json()}")
    form = Form("localise", lambda q, n: field(q, scene, settings.window, n))
    samples = sum(r.samples * len(r.channels) for r in scene.recordings)
    results = measure_forms(settings, {"localise": (form, settings.engine)}, samples)
    report = Report("localise", settings.to_json(), list(results.values()))
    report.checked = (
        f"the positions of {len(scene.calls)} calls, within a metre, and their number in each trial"
    )
    reached = results["localise"].samples_per_second
    report.figures = [
        Figure("over all arrays", reached / 1e6, "Msamples/s"),
        Figure("of real time", reached * scene.recordings[0].seconds / samples, "times"),
        Figure("median error of positions", outcome.median_m, "m"),
        Figure("largest error of positions", outcome.largest_m, "m"),
    ]
    return report
