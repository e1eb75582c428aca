"""`Stream`: an output port of a query under declaration, with the operators as methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xstream.ops.apply import Sink, apply
from xstream.ops.basic import Collect, Count, Merge, Pass
from xstream.ops.cfar import Cfar
from xstream.ops.decimate import Decimate
from xstream.ops.deinterleave import Deinterleave
from xstream.ops.dewindow import Dewindow
from xstream.ops.energy import Energy
from xstream.ops.fft import Fft
from xstream.ops.fir import Fir
from xstream.ops.gate import Gate
from xstream.ops.haar import Haar
from xstream.ops.hanning import Hanning
from xstream.ops.ifft import Ifft
from xstream.ops.join import Join
from xstream.ops.kernel import Kernel
from xstream.ops.mean import Mean
from xstream.ops.mean_below import MeanBelow
from xstream.ops.operator import Operator
from xstream.ops.rewindow import Rewindow
from xstream.ops.schema import Schema, SchemaLike
from xstream.ops.select import Select
from xstream.ops.silence import Silence
from xstream.ops.stats import Stats
from xstream.ops.std import Std
from xstream.ops.std_above import StdAbove
from xstream.ops.sync import Sync
from xstream.ops.threshold import Threshold
from xstream.ops.trimpeak import Trimpeak
from xstream.ops.union import Union
from xstream.ops.zip import Zip
from xstream.query import Query, SinkRef

__all__ = ["Stream"]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """What comes out of an operator. Methods add an operator behind it."""

    query: Query
    node: int
    port: int

    @property
    def schema(self) -> Schema:
        """What its tuples carry."""
        return self.query.nodes[self.node].outputs[self.port]

    def then(self, operator: Operator, *others: Stream, name: str | None = None) -> Stream:
        """Put any operator with one output behind this stream (and others)."""
        return self.query.add(operator, (self, *others), name)[0]

    def __repr__(self) -> str:
        return f"<Stream of {self.schema} from {self.query.nodes[self.node].name}>"

    # -- the user's own functions ------------------------------------------------------------

    def map(
        self,
        function: Kernel | Callable[..., Any],
        *arguments: Any,
        out: SchemaLike = None,
        name: str | None = None,
    ) -> Stream:
        """One tuple out for each tuple in. A plain callable says what it returns with `out=`."""
        return self.then(apply("map", function, arguments, out), name=name)

    def filter(
        self, function: Kernel | Callable[..., Any], *arguments: Any, name: str | None = None
    ) -> Stream:
        """The tuples for which the function is true."""
        return self.then(apply("filter", function, arguments, None), name=name)

    def iterate(
        self,
        function: Kernel | Callable[..., Any],
        *arguments: Any,
        out: SchemaLike = None,
        name: str | None = None,
    ) -> Stream:
        """Nought to many tuples out for each tuple in.

        A kernel emits through `out.emit(...)` and keeps its `state`; a plain callable returns an
        iterable of tuples, or is a generator.
        """
        return self.then(apply("iterate", function, arguments, out), name=name)

    # -- putting streams together ------------------------------------------------------------

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """Tuples of this and other streams of the same schema, as they come."""
        return self.then(Merge(), *others, name=name)

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """Like merge, with a leading field `stream` that says which stream a tuple is from.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> a = q.source(xs.io.iterable([1, 2], out=int))
        >>> b = q.source(xs.io.iterable([7], out=int))
        >>> out = a.union(b).collect()
        >>> sorted(q.run()[out])
        [(0, 1), (0, 2), (1, 7)]
        """
        return self.then(Union(), *others, name=name)

    def zip(self, *others: Stream, name: str | None = None) -> Stream:
        """One tuple of each stream makes one, with the fields of all; names are made unique.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> a = q.source(xs.io.iterable([1, 2, 3], out=int))
        >>> b = q.source(xs.io.iterable([0.5, 0.25], out=float))
        >>> out = a.zip(b).collect()
        >>> q.run()[out]
        [(1, 0.5), (2, 0.25)]
        """
        return self.then(Zip(), *others, name=name)

    def select(self, *names: str, name: str | None = None) -> Stream:
        """Some fields of every tuple, in the order in which they are named.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.iterable([(1, 0.5)], out={"n": int, "x": float})).select("x")
        >>> out = out.collect()
        >>> q.run()[out]
        [0.5]
        """
        return self.then(Select(names), name=name)

    def gate(self, control: Stream, name: str | None = None) -> Stream:
        """The samples that lie inside the ranges of `control`: (start, stop), in order of start.

        Control tuples may also be (keep, start, stop), as `silence` makes them: keep=False drops.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(10), window=4))
        >>> ranges = q.source(xs.io.iterable([(1, 3), (7, 9)], out=(int, int)))
        >>> out = src.gate(ranges).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[1, 2], [7], [8]]
        """
        return control.then(Gate(), self, name=name)

    def sync(self, *streams: Stream, flush: bool = False, name: str | None = None) -> Stream:
        """This is a control stream (keep, start, stop): those ranges of all the streams.

        Requests are served in order, each as soon as every stream covers it. keep=False discards
        what lies before `stop`, and is what bounds memory. Requests that still wait at the end of
        the streams are dropped, or get what there is where `flush`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> asked = q.source(xs.io.iterable([(True, 1, 3), (False, 0, 4)], out=(bool, int, int)))
        >>> left = q.source(xs.io.array(np.arange(6), window=2))
        >>> right = q.source(xs.io.array(-np.arange(6), window=3))
        >>> out = asked.sync(left, right).collect()
        >>> [tuple(np.asarray(seg).tolist() for seg in row) for row in q.run()[out]]
        [([1, 2], [-1, -2])]
        """
        return self.then(Sync(flush), *streams, name=name)

    def join(
        self, other: Stream, on: str | None = None, unique: bool = False, name: str | None = None
    ) -> Stream:
        """Pairs of tuples with the same key, a whole number: field `on`, or the first of each.

        `unique` says that a key comes once on each side, so that a pair that has met is forgotten.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> left = q.source(xs.io.iterable([(1, 0.5), (2, 0.25)], out={"time": int, "x": float}))
        >>> right = q.source(xs.io.iterable([(2, 7), (3, 8)], out={"time": int, "y": int}))
        >>> out = left.join(right, on="time").collect()
        >>> q.run()[out]
        [(2, 0.25, 7)]
        """
        return self.then(Join(on, unique), other, name=name)

    def deinterleave(self, channels: int, name: str | None = None) -> tuple[Stream, ...]:
        """One stream for each channel of a stream of interleaved samples.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> left, right = q.source(xs.io.array(np.arange(6), window=3)).deinterleave(2)
        >>> a, b = left.rewindow(3).collect(), right.rewindow(3).collect()
        >>> run = q.run()
        >>> np.asarray(run[a][0]).tolist(), np.asarray(run[b][0]).tolist()
        ([0, 2, 4], [1, 3, 5])
        """
        return self.query.add(Deinterleave(channels), (self,), name)

    def passed(self, name: str | None = None) -> Stream:
        """The same tuples, through an operator that does nothing: for measurements."""
        return self.then(Pass(), name=name)

    # -- windows -----------------------------------------------------------------------------

    def rewindow(
        self, width: int, gap: int = 0, flush: bool = False, name: str | None = None
    ) -> Stream:
        """Windows of `width` samples, every `width + gap` samples; gap < 0 overlaps, > 0 skips.

        A window is emitted as soon as it is full. What is left at the end of the stream is dropped,
        or emitted where `flush`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(8), window=3))
        >>> out = src.rewindow(4, gap=-2).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
        """
        return self.then(Rewindow(width, gap, flush), name=name)

    def dewindow(self, name: str | None = None) -> Stream:
        """The inverse of an overlapping rewindow: what each window adds to those before it.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(8)))
        >>> out = src.rewindow(4, gap=-2).dewindow().collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[0, 1, 2, 3], [4, 5], [6, 7]]
        """
        return self.then(Dewindow(), name=name)

    # -- window statistics -------------------------------------------------------------------

    def mean(self, name: str | None = None) -> Stream:
        """The mean of each window.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0), window=2)).mean().collect()
        >>> q.run()[out]
        [0.5, 2.5]
        """
        return self.then(Mean(), name=name)

    def std(self, name: str | None = None) -> Stream:
        """The standard deviation of each window, right on any level.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.float32([1e4 - 1, 1e4 + 1])))
        >>> out = src.std().collect()
        >>> q.run()[out]
        [1.0]
        """
        return self.then(Std(), name=name)

    def energy(self, name: str | None = None) -> Stream:
        """The sum of the squares of each window.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0), window=2)).energy().collect()
        >>> q.run()[out]
        [1.0, 13.0]
        """
        return self.then(Energy(), name=name)

    def stats(self, name: str | None = None) -> Stream:
        """(start, mean, std, energy) of each window.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.array([1.0, 3.0]), start=7)).stats().collect()
        >>> q.run()[out]
        [(7, 2.0, 1.0, 10.0)]
        """
        return self.then(Stats(), name=name)

    def std_above(self, alpha: float, name: str | None = None) -> Stream:
        """Windows whose standard deviation is above alpha.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([1.0, 1.0, 1.0, 5.0]), window=2))
        >>> out = src.std_above(1.5).collect()
        >>> q.run()[out]
        [<SigSeg 2 samples [2, 4) float64 index, 1 piece, refcount-lazy>]
        """
        return self.then(StdAbove(alpha), name=name)

    def mean_below(self, beta: float, name: str | None = None) -> Stream:
        """Windows whose mean is below beta.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0), window=2)).mean_below(1.0).count()
        >>> q.run()[out]
        1
        """
        return self.then(MeanBelow(beta), name=name)

    def silence(self, gamma: float, name: str | None = None) -> Stream:
        """(keep, start, stop) of each window; keep where its standard deviation is above gamma.

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

    def hanning(self, size: int, name: str | None = None) -> Stream:
        """Every `size` samples times the Hann window of that size.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.ones(10), window=10)).hanning(5).collect()
        >>> np.asarray(q.run()[out][0]).round(3).tolist()
        [0.0, 0.5, 1.0, 0.5, 0.0, 0.0, 0.5, 1.0, 0.5, 0.0]
        """
        return self.then(Hanning(size), name=name)

    def fft(self, size: int, name: str | None = None) -> Stream:
        """The spectrum of every `size` samples: half of it, size // 2 + 1 bins, if they are real.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> tone = np.cos(np.arange(8) * np.pi / 2)
        >>> out = q.source(xs.io.array(tone)).fft(8).collect()
        >>> np.abs(q.run()[out][0]).round(6).tolist()
        [0.0, 0.0, 4.0, 0.0, 0.0]
        """
        return self.then(Fft(size), name=name)

    def ifft(self, size: int, real: bool = True, name: str | None = None) -> Stream:
        """The inverse of `fft`: `size` samples from every spectrum.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.arange(4.0))).fft(4).ifft(4).collect()
        >>> np.asarray(q.run()[out][0]).round(6).tolist()
        [0.0, 1.0, 2.0, 3.0]
        """
        return self.then(Ifft(size, real), name=name)

    def haar(self, level: int, bands: bool = False, name: str | None = None) -> Stream:
        """The Haar wavelet's differences at `level`; all levels, and the rest, where `bands`.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([4.0, 2.0, 1.0, 1.0])))
        >>> out = src.haar(2, bands=True).collect()
        >>> [np.asarray(band).round(3).tolist() for band in q.run()[out][0]]
        [[1.414, 0.0], [2.0], [4.0]]
        """
        return self.then(Haar(level, bands), name=name)

    def fir(self, taps: Sequence[float], name: str | None = None) -> Stream:
        """y[i] = sum of taps[k] * x[i - k], seamless across segments.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.array([2.0, 4.0, 6.0, 0.0]), window=2))
        >>> out = src.fir([0.5, 0.5]).collect()
        >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
        [[1.0, 3.0], [5.0, 3.0]]
        """
        return self.then(Fir(tuple(map(float, taps))), name=name)

    def decimate(
        self, factor: int, taps: Sequence[float] | None = None, name: str | None = None
    ) -> Stream:
        """Every `factor`th sample, after a filter: a windowed sinc unless `taps` says otherwise.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.array(np.arange(8.0), rate_hz=8.0, window=3))
        >>> out = src.decimate(4, taps=[1.0]).collect()
        >>> q.run()[out]
        [<SigSeg 1 samples [0, 1) float64 at 2 Hz, 1 piece, refcount-lazy>, \
<SigSeg 1 samples [1, 2) float64 at 2 Hz, 1 piece, refcount-lazy>]
        """
        own = None if taps is None else tuple(map(float, taps))
        return self.then(Decimate(factor, own), name=name)

    # -- finding things ----------------------------------------------------------------------

    def trimpeak(self, lowest: bool = False, name: str | None = None) -> Stream:
        """(value, segment): the largest sample of each window, and the window from there on.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.array([1.0, 5.0, 2.0]))).trimpeak().collect()
        >>> q.run()[out]
        [(5.0, <SigSeg 2 samples [1, 3) float64 index, 1 piece, refcount-lazy>)]
        """
        return self.then(Trimpeak(lowest), name=name)

    def threshold(self, level: float, absolute: bool = False, name: str | None = None) -> Stream:
        """(keep, start, stop): stretches above a level, and with keep=False what lies between.

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
    ) -> Stream:
        """(keep, start, stop) of events whose scores stand out of the noise: for `sync`.

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

    # -- sinks -------------------------------------------------------------------------------

    def collect(self, name: str | None = None) -> SinkRef:
        """Keep every tuple: `run[out]` is a list."""
        return self._sink(Collect(), name)

    def count(self, name: str | None = None) -> SinkRef:
        """Count: `run[out]` is the number of tuples, and `run[out].samples` that of samples."""
        return self._sink(Count(), name)

    def sink(self, function: Callable[..., Any], name: str | None = None) -> SinkRef:
        """Call a plain Python function with every tuple."""
        label = getattr(function, "__name__", type(function).__name__)
        return self._sink(Sink("sink", label, function=function), name)

    def _sink(self, operator: Operator, name: str | None) -> SinkRef:
        return SinkRef(self.query, self.query.add_node(operator, (self,), name).id)
