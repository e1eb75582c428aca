"""`xstream bench detectaudio`: samples per second over all four channels, and the cost of `sync`.

DETECTAUDIO passes windows of 32 samples between its operators, as the paper does. `xstream bench
detectaudio-blocks` measures the variant that passes whole segments of 128 such windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detectaudio.detector import Detector
    from detectaudio.recording import Recording
    from xstream.bench.report import Report
    from xstream.bench.settings import Settings
    from xstream.query import Query, SinkRef

__all__ = ["before_sync", "benchmark", "benchmark_blocks", "check_window", "with_sync"]

#: Throughput of XStream in the paper (section II), in samples/s over the four channels.
PAPERS_SAMPLES_PER_SECOND = 7.5e6
#: GNU Radio 3.10 on a similar machine, for the detector without CFAR and sync.
FLOOR_MSAMPLES = 100.0
#: The variant with blocks, on the same machine.
BLOCKS_FLOOR_MSAMPLES = 800.0


def check_window(window: int, recording: Recording) -> None:
    """Refuse windows so large that much of the recording would not fill one."""
    from xstream.errors import InputError

    most = recording.samples // 8
    if window > most:
        raise InputError(
            f"--window must be at most {most:,} for a recording of {recording.samples:,} samples, "
            f"not {window:,}"
        )


def with_sync(
    query: Query, recording: Recording, window: int, repeat: int, detector: Detector | None = None
) -> SinkRef:
    """Declare DETECTAUDIO, with channels in segments of `window` samples."""
    from detectaudio.query import declare, sources

    check_window(window, recording)
    channels = sources(query, recording, window, repeat)
    return declare(channels, recording.rate_hz, detector).count()


def before_sync(
    query: Query, recording: Recording, window: int, repeat: int, detector: Detector
) -> SinkRef:
    """Declare it without `sync`: all channels are read and one is examined."""
    from detectaudio.query import detections, sources

    channels = sources(query, recording, window, repeat)
    for channel in channels[1:]:
        channel.count()
    return detections(channels[0], recording.rate_hz, detector).count()


def benchmark(settings: Settings) -> Report:
    """Measure DETECTAUDIO (section II.A): four channels, detector, CFAR and sync."""
    from detectaudio.detector import Detector

    return _measured("detectaudio", settings, Detector(), FLOOR_MSAMPLES)


def benchmark_blocks(settings: Settings) -> Report:
    """Measure DETECTAUDIO with segments of `--window` samples between its operators."""
    from detectaudio.detector import Detector

    detector = Detector().in_blocks(settings.window)
    return _measured("detectaudio-blocks", settings, detector, BLOCKS_FLOOR_MSAMPLES)


def _measured(name: str, settings: Settings, detector: Detector, floor: float) -> Report:
    from detectaudio.outcome import SURE_DB, evaluate
    from detectaudio.query import find
    from detectaudio.recording import generate, read_wav
    from xstream.bench.application import Form, measure_forms
    from xstream.bench.report import Figure, Report

    known = settings.input is None
    recording = (
        generate(seconds=10.0, events=6, snr_db=(SURE_DB, 30.0))
        if settings.input is None
        else read_wav([settings.input])
    )
    check_window(settings.window, recording)
    outcome = evaluate(
        recording.events, find(recording, detector, 0, settings.scheduler, settings.memory),
        detector.padding,
    )  # fmt: skip
    if outcome.missed or (known and outcome.false_alarms):
        raise AssertionError(f"{name}: {outcome.to_json()}")
    window = settings.window
    forms = {
        name: Form(name, lambda q, n: with_sync(q, recording, window, n, detector)),
        "before sync": Form(
            "before sync", lambda q, n: before_sync(q, recording, window, n, detector)
        ),
    }
    results = measure_forms(
        settings,
        {form.name: (form, settings.engine) for form in forms.values()},
        recording.samples * len(recording.channels),
    )
    report = Report(name, settings.to_json(), list(results.values()))
    report.checked = (
        f"the {len(recording.events)} known events, all of them and nothing else, and the number "
        "of tuples in each trial"
    )
    reached, plain = (results[form].samples_per_second for form in forms)
    report.figures = [
        Figure("over all channels", reached / 1e6, "Msamples/s", floor),
        Figure("throughput cost of sync", 1.0 - reached / plain, "of 1", ceiling=0.10),
        Figure("against the paper's", reached / PAPERS_SAMPLES_PER_SECOND, "times"),
    ]
    return report
