"""The methods of `Stream` for signals: operators on one stream of segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xstream.engine.operator import Operator
from xstream.ops.cfar import Cfar
from xstream.ops.decimate import Decimate
from xstream.ops.dewindow import Dewindow
from xstream.ops.energy import Energy
from xstream.ops.fft import Fft
from xstream.ops.fir import Fir
from xstream.ops.haar import Haar
from xstream.ops.hanning import Hanning
from xstream.ops.ifft import Ifft
from xstream.ops.mean import Mean
from xstream.ops.mean_below import MeanBelow
from xstream.ops.rewindow import Rewindow
from xstream.ops.silence import Silence
from xstream.ops.stats import Stats
from xstream.ops.std import Std
from xstream.ops.std_above import StdAbove
from xstream.ops.threshold import Threshold
from xstream.ops.trimpeak import Trimpeak

__all__ = ["SignalMethods"]


class SignalMethods:
    """Windows, statistics, spectra, filters and detectors of one stream of segments."""

    __slots__ = ()

    def then(self, operator: Operator, *others: Self, name: str | None = None) -> Self:
        """Add an operator with one output."""
        raise NotImplementedError

    # -- windows -----------------------------------------------------------------------------

    def rewindow(
        self, width: int, gap: int = 0, flush: bool = False, name: str | None = None
    ) -> Self:
        """Cut windows of `width` samples every `width + gap` samples; a negative gap overlaps.

        A window is emitted as soon as it is full. A partial window at the end of the stream is
        dropped, or emitted with `flush`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(8), window=3))
        >>> out = src.rewindow(4, gap=-2).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
        """
        return self.then(Rewindow(width, gap, flush), name=name)

    def dewindow(self, name: str | None = None) -> Self:
        """Join overlapping windows to a continuous signal, the inverse of an overlapping rewindow.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(8)))
        >>> out = src.rewindow(4, gap=-2).dewindow().collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[0, 1, 2, 3], [4, 5], [6, 7]]
        """
        return self.then(Dewindow(), name=name)

    # -- window statistics -------------------------------------------------------------------

    def mean(self, name: str | None = None) -> Self:
        """Compute the mean of each window.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0), window=2)).mean().collect()
        >>> q.run()[out]
        [0.5, 2.5]
        """
        return self.then(Mean(), name=name)

    def std(self, name: str | None = None) -> Self:
        """Compute the standard deviation of each window, accurately at any signal level.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.float32([1e4 - 1, 1e4 + 1])))
        >>> out = src.std().collect()
        >>> q.run()[out]
        [1.0]
        """
        return self.then(Std(), name=name)

    def energy(self, name: str | None = None) -> Self:
        """Compute the sum of the squares of each window.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0), window=2)).energy().collect()
        >>> q.run()[out]
        [1.0, 13.0]
        """
        return self.then(Energy(), name=name)

    def stats(self, name: str | None = None) -> Self:
        """Compute (start, mean, std, energy) of each window.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.array([1.0, 3.0]), start=7)).stats().collect()
        >>> q.run()[out]
        [(7, 2.0, 1.0, 10.0)]
        """
        return self.then(Stats(), name=name)

    def std_above(self, alpha: float, name: str | None = None) -> Self:
        """Keep windows whose standard deviation is above alpha.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([1.0, 1.0, 1.0, 5.0]), window=2))
        >>> out = src.std_above(1.5).collect()
        >>> q.run()[out]
        [<SigSeg 2 samples [2, 4) float64 index, 1 piece, refcount-lazy>]
        """
        return self.then(StdAbove(alpha), name=name)

    def mean_below(self, beta: float, name: str | None = None) -> Self:
        """Keep windows whose mean is below beta.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0), window=2)).mean_below(1.0).count()
        >>> q.run()[out]
        1
        """
        return self.then(MeanBelow(beta), name=name)

    def silence(self, gamma: float, name: str | None = None) -> Self:
        """Emit (keep, start, stop) of each window; keep if its standard deviation is above gamma.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([0.0, 0.0, -1.0, 1.0]), window=2))
        >>> out = src.silence(0.5).collect()
        >>> heard = src.gate(src.silence(0.5)).collect()
        >>> run = q.run()
        >>> run[out], [np.asarray(seg).tolist() for seg in run[heard]]
        ([(False, 0, 2), (True, 2, 4)], [[-1.0, 1.0]])
        """
        return self.then(Silence(gamma), name=name)

    # -- spectra and filters -----------------------------------------------------------------

    def hanning(self, size: int, name: str | None = None) -> Self:
        """Multiply every `size` samples by the Hann window of that size.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.ones(10), window=10)).hanning(5).collect()
        >>> np.asarray(q.run()[out][0]).round(3).tolist()
        [0.0, 0.5, 1.0, 0.5, 0.0, 0.0, 0.5, 1.0, 0.5, 0.0]
        """
        return self.then(Hanning(size), name=name)

    def fft(self, size: int, name: str | None = None) -> Self:
        """Compute the spectrum of every `size` samples; for real samples, size // 2 + 1 bins.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> tone = np.cos(np.arange(8) * np.pi / 2)
        >>> out = q.source(xs.io.array(tone)).fft(8).collect()
        >>> np.abs(q.run()[out][0]).round(6).tolist()
        [0.0, 0.0, 4.0, 0.0, 0.0]
        """
        return self.then(Fft(size), name=name)

    def ifft(self, size: int, real: bool = True, name: str | None = None) -> Self:
        """Compute `size` samples from every spectrum, the inverse of `fft`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0))).fft(4).ifft(4).collect()
        >>> np.asarray(q.run()[out][0]).round(6).tolist()
        [0.0, 1.0, 2.0, 3.0]
        """
        return self.then(Ifft(size, real), name=name)

    def haar(self, level: int, bands: bool = False, name: str | None = None) -> Self:
        """Compute the Haar detail coefficients at `level`, or all bands with `bands`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([4.0, 2.0, 1.0, 1.0])))
        >>> out = src.haar(2, bands=True).collect()
        >>> [np.asarray(band).round(3).tolist() for band in q.run()[out][0]]
        [[1.414, 0.0], [2.0], [4.0]]
        """
        return self.then(Haar(level, bands), name=name)

    def fir(self, taps: Sequence[float], name: str | None = None) -> Self:
        """Filter: y[i] = sum of taps[k] * x[i - k], continuous across segments.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([2.0, 4.0, 6.0, 0.0]), window=2))
        >>> out = src.fir([0.5, 0.5]).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[1.0, 3.0], [5.0, 3.0]]
        """
        return self.then(Fir(taps), name=name)

    def decimate(
        self, factor: int, taps: Sequence[float] | None = None, name: str | None = None
    ) -> Self:
        """Filter and keep every `factor`-th sample; `taps` defaults to a windowed sinc.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(8.0), rate_hz=8.0, window=3))
        >>> out = src.decimate(4, taps=[1.0]).collect()
        >>> q.run()[out]
        [<SigSeg 1 samples [0, 1) float64 at 2 Hz, 1 piece, refcount-lazy>, \
<SigSeg 1 samples [1, 2) float64 at 2 Hz, 1 piece, refcount-lazy>]
        """
        return self.then(Decimate(factor, taps), name=name)

    # -- detection ---------------------------------------------------------------------------

    def trimpeak(self, lowest: bool = False, name: str | None = None) -> Self:
        """Emit (value, segment): the largest sample of each window, and the window from there on.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.array([1.0, 5.0, 2.0]))).trimpeak().collect()
        >>> q.run()[out]
        [(5.0, <SigSeg 2 samples [1, 3) float64 index, 1 piece, refcount-lazy>)]
        """
        return self.then(Trimpeak(lowest), name=name)

    def threshold(self, level: float, absolute: bool = False, name: str | None = None) -> Self:
        """Emit ranges (keep, start, stop) above a level, and with keep=False those in between.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([0, 3, 4, 0, 0, 5, 6]), window=2))
        >>> out = src.threshold(2).sync(src).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[3, 4], [5, 6]]
        """
        return self.then(Threshold(level, absolute), name=name)

    def cfar(
        self,
        sigmas: float,
        alpha: float = 0.999,
        *,
        startup: int = 300,
        refractory: int = 40,
        padding: int = 2400,
        step: int = 1,
        longest: int = 10_000,
        name: str | None = None,
    ) -> Self:
        """Emit ranges (keep, start, stop) of events whose scores exceed the noise, for `sync`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> scores = np.tile([1.0, 2.0], 50)
        >>> scores[60] = 30.0
        >>> src = q.source(xs.io.array(scores))
        >>> out = src.cfar(5.0, startup=20, refractory=3, padding=64, step=32).collect()
        >>> [found for found in q.run()[out] if found[0]]
        [(True, 1856, 2016)]
        """
        operator = Cfar(sigmas, alpha, startup, refractory, padding, step, longest)
        return self.then(operator, name=name)
