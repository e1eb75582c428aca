"""The query: events are detected in one channel and cut out of all channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import xstream as xs
from detectaudio._kernels import score
from detectaudio.detector import Detector
from detectaudio.recording import Recording

__all__ = ["SEGMENT", "Found", "declare", "detections", "find", "heard", "sources"]

#: Samples per segment of a channel; `rewindow` cuts them into the detector's windows.
SEGMENT = 4096

#: The range of an event including its padding, and the samples of every channel.
Found = tuple[xs.SigSeg, ...]


def sources(
    query: xs.Query,
    recording: Recording,
    window: int = SEGMENT,
    repeat: int = 1,
    offered_hz: float | None = None,
    label: str = "",
) -> list[xs.Stream]:
    """Add a source for each channel of a recording; `label` is a prefix of their names."""
    return [
        query.source(
            xs.io.array(
                samples, recording.rate_hz, window=window, repeat=repeat, offered_hz=offered_hz
            ),
            name=f"{label}channel {number}",
        )
        for number, samples in enumerate(recording.channels)
    ]


def detections(channel: xs.Stream, rate_hz: float, detector: Detector) -> xs.Stream:
    """Return the ranges (keep, start, stop) of the events of one channel, for `sync`."""
    windows = channel.rewindow(detector.block)
    spectra = windows.hanning(detector.window).fft(detector.window)
    scores = spectra.map(score(detector.bins), detector.weights(rate_hz))
    return scores.cfar(
        detector.sigmas,
        detector.alpha,
        startup=detector.startup,
        refractory=detector.refractory,
        padding=detector.padding,
        step=detector.window,
    )


def declare(
    channels: Sequence[xs.Stream], rate_hz: float, detector: Detector | None = None, listen: int = 0
) -> xs.Stream:
    """Return a tuple with a segment of every channel for each event in channel `listen`.

    >>> import xstream as xs
    >>> from detectaudio import Detector, declare, generate
    >>> from detectaudio.query import sources
    >>> recording = generate(seconds=2.0, events=1, snr_db=20.0, seed=3)
    >>> q = xs.Query("detectaudio")
    >>> out = declare(sources(q, recording), recording.rate_hz).collect()
    >>> len(q.run()[out])
    1
    """
    ranges = detections(channels[listen], rate_hz, detector or Detector())
    return ranges.sync(*channels, flush=True)


def find(
    recording: Recording,
    detector: Detector | None = None,
    listen: int = 0,
    scheduler: str = "df",
    memory: str = "refcount-lazy",
    progress: Callable[[xs.Run], None] | None = None,
) -> list[Found]:
    """Return the events of a recording, each with its samples in every channel.

    Ctrl-C raises `KeyboardInterrupt`, because a part of the events is not a result.
    """
    chosen = detector or Detector()
    query = xs.Query("detectaudio")
    channels = sources(query, recording)
    out = declare(channels, recording.rate_hz, chosen, listen).collect()
    run = query.run(scheduler=scheduler, memory=memory, progress=progress or False)
    found = run.uninterrupted()[out]
    return [row if isinstance(row, tuple) else (row,) for row in found]


def heard(found: Found, padding: int) -> tuple[int, int]:
    """Return the range of an event in the stream without its padding."""
    segment = found[0]
    start, stop = segment.start + padding, segment.stop - padding
    middle = (segment.start + segment.stop) // 2
    return (int(min(start, middle)), int(max(stop, middle)))
