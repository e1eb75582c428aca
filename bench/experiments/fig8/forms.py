"""PIPELINE and DETECTAUDIO in every form of Figure 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from detectaudio.detector import VARIANTS, Detector
from detectaudio.query import SEGMENT, detections
from detectaudio.recording import Recording
from leaks.detector import LeakDetector
from leaks.pressure import Pressure
from leaks.query import declare as leaks

import xstream as xs

from . import audio_kernels as audio
from . import pipeline_kernels as pipe

Declare = Callable[[xs.Query, Any, int], xs.Stream]


def rows_of(samples: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Samples with their timestamps between them."""
    rows = np.zeros(len(samples), dtype)
    rows["time"], rows["value"] = np.arange(len(samples)), samples
    return rows


# -- PIPELINE --------------------------------------------------------------------------------


def pipeline_samples(q: xs.Query, pressure: Pressure, repeat: int) -> xs.Stream:
    """Every sample a tuple."""
    how = LeakDetector()
    details = (
        q.source(xs.io.samples(pressure.samples, repeat=repeat))
        .iterate(pipe.windows_of_samples, how.window, how.step)
        .iterate(pipe.haar_of_samples, how.window)
    )
    peaks = [details]
    for number in range(4):
        peaks.append(peaks[-1].iterate(pipe.trimpeak_of_samples, bool(number % 2)))
    marks = [stream.filter(pipe.is_mark) for stream in peaks]
    return (
        marks[0]
        .zip(*marks[1:])
        .iterate(pipe.leak_of_samples, how.step, how.guard, how.ratio, how.sigmas)
    )


def _pipeline_rows(q: xs.Query, pressure: Pressure, repeat: int, haar: xs.Kernel) -> xs.Stream:
    how = LeakDetector()
    source = xs.io.array(rows_of(pressure.samples, pipe.ROW), pressure.rate_hz, SEGMENT, repeat)
    details = q.source(source).rewindow(how.window, gap=-how.overlap).map(haar)
    first = details.iterate(pipe.trimpeak_rows, False)
    second = first.select("segment").iterate(pipe.trimpeak_rows, True)
    third = second.select("segment").iterate(pipe.trimpeak_rows, False)
    fourth = third.select("segment").iterate(pipe.trimpeak_rows, True)
    peaks = details.zip(
        first, second.select("value"), third.select("value"), fourth.select("value")
    )
    return peaks.iterate(pipe.leak_rows, how.guard, how.ratio, how.sigmas)


def pipeline_windowstride(q: xs.Query, pressure: Pressure, repeat: int) -> xs.Stream:
    """Windows of rows, transformed as they lie."""
    return _pipeline_rows(q, pressure, repeat, pipe.haar_strided)


def pipeline_windows(q: xs.Query, pressure: Pressure, repeat: int) -> xs.Stream:
    """Windows of rows, reordered into a column before the wavelet."""
    return _pipeline_rows(q, pressure, repeat, pipe.haar_columns)


def pipeline_segs(q: xs.Query, pressure: Pressure, repeat: int) -> xs.Stream:
    """PIPELINE as it is."""
    return leaks(q.source(xs.io.array(pressure.samples, pressure.rate_hz, SEGMENT, repeat)))


# -- DETECTAUDIO -----------------------------------------------------------------------------


def _cfar(scores: xs.Stream, how: Detector) -> xs.Stream:
    return scores.cfar(
        how.sigmas, how.alpha, startup=how.startup, refractory=how.refractory,
        padding=how.padding, step=how.window,
    )  # fmt: skip


Detected = tuple[xs.Stream, list[xs.Stream]]


def _samples(q: xs.Query, recording: Recording, repeat: int, how: Detector) -> Detected:
    channels = [q.source(xs.io.samples(channel, repeat=repeat)) for channel in recording.channels]
    scores = (
        channels[0]
        .map(audio.hann_of_samples, np.hanning(how.window))
        .iterate(audio.fft_of_samples)
        .iterate(audio.score_of_bins, how.weights(recording.rate_hz).astype(np.float64))
    )
    return _cfar(scores, how), channels


def _rows(q: xs.Query, recording: Recording, repeat: int, how: Detector) -> Detected:
    channels = [
        q.source(xs.io.array(rows_of(channel, audio.ROW), recording.rate_hz, SEGMENT, repeat))
        for channel in recording.channels
    ]
    scores = (
        channels[0]
        .rewindow(how.block)
        .map(audio.hann_rows, np.hanning(how.window).astype(np.float32))
        .map(audio.fft_rows)
        .map(audio.score_rows, how.weights(recording.rate_hz))
    )
    return _cfar(scores, how), channels


def _segs(q: xs.Query, recording: Recording, repeat: int, how: Detector) -> Detected:
    channels = [
        q.source(xs.io.array(channel, recording.rate_hz, SEGMENT, repeat))
        for channel in recording.channels
    ]
    return detections(channels[0], recording.rate_hz, how), channels


def _joined(ranges: xs.Stream, samples: Sequence[xs.Stream]) -> xs.Stream:
    """The channels joined on their timestamps, and of that what lies in the ranges."""
    row = samples[0]
    for other in samples[1:]:
        row = row.join(other, unique=True)
    events = ranges.map(audio.range_event)
    return events.merge(row.map(audio.row_event)).iterate(audio.rows_in_ranges)


def detectaudio(variant: str, model: str, behind: str) -> Declare:
    """DETECTAUDIO with `model` as its data, and `behind` the detector: before, sync or join."""
    how = VARIANTS[variant]
    detect = {"SAMPLES": _samples, "WINDOWS": _rows, "SEGS": _segs}[model]
    unpack = {"WINDOWS": audio.samples_of_rows, "SEGS": audio.samples_of_segment}

    def declare(q: xs.Query, recording: Recording, repeat: int) -> xs.Stream:
        ranges, channels = detect(q, recording, repeat, how)
        if behind == "sync":
            return ranges.sync(*channels)
        if behind == "join":
            if model in unpack:
                channels = [channel.iterate(unpack[model]) for channel in channels]
            return _joined(ranges, channels)
        for channel in channels[1:]:
            channel.count()
        return ranges

    return declare


PIPELINE: dict[str, Declare] = {
    "SAMPLES": pipeline_samples,
    "WINDOWSTRIDE": pipeline_windowstride,
    "WINDOWS": pipeline_windows,
    "SEGS": pipeline_segs,
}
#: By variant, data model and what is behind the detector.
DETECTAUDIO: dict[tuple[str, str, str], Declare] = {
    (variant, model, behind): detectaudio(variant, model, behind)
    for variant in VARIANTS
    for behind in ("before", "sync", "join")
    for model in ("SAMPLES", "WINDOWS", "SEGS")
    # sync is about ranges of segments; one tuple per sample has no blocks
    if (model, behind) != ("SAMPLES", "sync")
    and (variant, model) != ("DETECTAUDIO-BLOCKS", "SAMPLES")
}
