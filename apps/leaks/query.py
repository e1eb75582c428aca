"""The query: overlapping windows, Haar wavelet, four trimpeaks, zip, LeakDetect (Figure 3)."""

from __future__ import annotations

from collections.abc import Callable

import xstream as xs
from leaks._kernels import leak_detect
from leaks.detector import LeakDetector
from leaks.pressure import Pressure

__all__ = ["declare", "find"]


def declare(pressure: xs.Stream, detector: LeakDetector | None = None) -> xs.Stream:
    """Return (start, ratio) of every front whose echo is too weak.

    >>> import xstream as xs
    >>> from leaks import declare, generate
    >>> pressure = generate(seconds=20.0, transients=4, leaks=1, seed=3)
    >>> q = xs.Query("pipeline")
    >>> stream = q.source(xs.io.array(pressure.samples, pressure.rate_hz))
    >>> out = declare(stream).collect()
    >>> len(q.run()[out])
    1
    """
    how = detector or LeakDetector()
    details = pressure.rewindow(how.window, gap=-how.overlap).haar(how.level)
    first = details.trimpeak()
    second = first.select("segment").trimpeak(lowest=True)
    third = second.select("segment").trimpeak()
    fourth = third.select("segment").trimpeak(lowest=True)
    peaks = details.zip(
        first, second.select("value"), third.select("value"), fourth.select("value")
    )
    return peaks.iterate(leak_detect, 2**how.level, how.guard, how.ratio, how.sigmas)


def find(
    pressure: Pressure,
    detector: LeakDetector | None = None,
    scheduler: str = "df",
    memory: str = "refcount-lazy",
    progress: Callable[[xs.Run], None] | None = None,
) -> list[tuple[int, float]]:
    """Return the sample indices of leaks and the ratios of their echoes.

    Ctrl-C raises `KeyboardInterrupt`, because a part of the leaks is not a result.
    """
    query = xs.Query("pipeline")
    stream = query.source(xs.io.array(pressure.samples, pressure.rate_hz), name="pressure")
    out = declare(stream, detector).collect()
    run = query.run(scheduler=scheduler, memory=memory, progress=progress or False)
    found: list[tuple[int, float]] = run.uninterrupted()[out]
    return found
