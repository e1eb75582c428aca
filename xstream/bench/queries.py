"""The queries of the benchmarks, each with segments and with one tuple per sample (NoSigSeg)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream import io
from xstream.bench import _kernels
from xstream.bench.trials import Stopwatch, Trial
from xstream.errors import InputError
from xstream.query import Query
from xstream.run import Run
from xstream.sched import scheduler
from xstream.sigseg import SigSeg, memory_manager
from xstream.stream import Stream
from xstream.views import View, shown

__all__ = ["KINDS", "Declared", "Engine", "Passchain", "Silencefilter", "Statfilter", "joined"]

#: Implementations of an operator, the values of `--kind`.
KINDS = ("library", "kernel", "python")


@dataclass(frozen=True, slots=True)
class Engine:
    """The settings of a run."""

    scheduler: str = "df"
    memory: str = "refcount-lazy"
    tuple_burst: int | None = 64
    #: Whether seconds are wall-clock time or CPU time of this process.
    clock: str = "wall"
    #: Whether chains of kernels are compiled into one; not where managers or schedulers compete.
    fuse: bool = True
    threads: int = 1

    def run(self, query: Query) -> Run:
        """Run a query with these settings; raise `KeyboardInterrupt` if Ctrl-C ends it early."""
        return query.run(
            self.scheduler, self.memory, self.tuple_burst, debug=False, fuse=self.fuse,
            threads=self.threads,
        ).uninterrupted()  # fmt: skip

    def timed_run(self, query: Query, view: View | None = None) -> tuple[Run, Trial]:
        """Run a query and time loading separately, which is all work before the first tuple.

        A view shows the run; neither its beginning nor its end are timed.
        """
        query.validate()
        with Stopwatch() as loading:
            manager = memory_manager(self.memory)
            run = Run(
                query, scheduler(self.scheduler), manager, self.tuple_burst, debug=False,
                fuse=self.fuse, threads=self.threads,
            )  # fmt: skip
        with shown(run, view), Stopwatch() as running:
            run.execute()
        run.uninterrupted()
        return run, running.trial(run.source_samples, self.clock, loading.wall_seconds)


@dataclass(frozen=True)
class Declared:
    """The query of a benchmark over a recording."""

    recording: npt.NDArray[Any] = field(repr=False)
    window: int
    rate_hz: float = 44_100.0
    operators: int = 10
    kind: str = "library"
    segments: bool = True
    alpha: float = 0.02
    beta: float = 0.001

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"--kind is one of {', '.join(KINDS)}, not {self.kind!r}")
        for name in ("window", "operators"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} is at least 1, not {getattr(self, name)}")

    def source(self, query: Query, repeat: int) -> Stream:
        """Add the source: the recording in windows, or sample by sample."""
        if self.segments:
            return query.source(
                io.array(self.recording, self.rate_hz, window=self.window, repeat=repeat)
            )
        return query.source(io.samples(self.recording, repeat=repeat))

    def build(self, query: Query, repeat: int) -> Stream:
        """Add the operators of the benchmark."""
        raise NotImplementedError

    def reference(self) -> npt.NDArray[Any]:
        """Return the expected output of one pass over the recording, computed with numpy."""
        raise NotImplementedError

    def checked_samples(self, engine: Engine) -> int:
        """Check the output of one pass against the reference and return its number of samples."""
        query = Query(type(self).__name__)
        out = self.build(query, 1).collect()
        found, wanted = joined(engine.run(query)[out]), self.reference()
        if self.segments and found.dtype != wanted.dtype:
            raise AssertionError(f"{query.name}: samples are {found.dtype}, not {wanted.dtype}")
        if not np.array_equal(found, wanted):
            raise AssertionError(
                f"{query.name}: {len(found):,} samples came out that are not the {len(wanted):,} "
                "of the reference"
            )
        return len(wanted)

    def trial(self, engine: Engine, repeat: int, expected_samples: int) -> Trial:
        """Run and count; loading is the work before the clock of the run starts."""
        query = Query(type(self).__name__)
        out = self.build(query, repeat).count()
        run, trial = engine.timed_run(query)
        found = run[out].samples
        if found != expected_samples * repeat:
            raise AssertionError(
                f"{query.name}: {found:,} samples came out, not {expected_samples * repeat:,}"
            )
        return trial


def _same(*values: Any) -> Any:
    return values[0] if len(values) == 1 else values


class Passchain(Declared):
    """PASSCHAIN and EngineBench: a chain of operators that pass their input on."""

    def build(self, query: Query, repeat: int) -> Stream:
        """Add the chain."""
        stream = self.source(query, repeat)
        for _ in range(self.operators):
            if self.kind == "library":
                stream = stream.passed()
            elif self.kind == "kernel":
                kernel = _kernels.pass_window if self.segments else _kernels.pass_sample
                stream = stream.filter(kernel)
            else:
                stream = stream.map(_same)
        return stream

    def reference(self) -> npt.NDArray[Any]:
        """Return the whole recording."""
        return self.recording


class Statfilter(Declared):
    """STATFILTER: windows louder than alpha whose mean is below beta."""

    def build(self, query: Query, repeat: int) -> Stream:
        """Add the two filters."""
        stream = self.source(query, repeat)
        if not self.segments:
            return stream.iterate(_kernels.louder_samples, self.window, self.alpha).iterate(
                _kernels.lower_samples, self.window, self.beta
            )
        if self.kind == "library":
            return stream.std_above(self.alpha).mean_below(self.beta)
        if self.kind == "kernel":
            return stream.filter(_kernels.louder, self.alpha).filter(_kernels.lower, self.beta)
        alpha, beta = self.alpha, self.beta
        return stream.filter(
            lambda segment: np.asarray(segment).std(dtype=np.float64) > alpha
        ).filter(lambda segment: np.asarray(segment).mean(dtype=np.float64) < beta)

    def reference(self) -> npt.NDArray[Any]:
        """Return the windows that must pass, computed with numpy in float64."""
        windows = self.recording.reshape(-1, self.window)
        wide = windows.astype(np.float64)
        keep = (wide.std(axis=1) > self.alpha) & (wide.mean(axis=1) < self.beta)
        passing: npt.NDArray[Any] = windows[keep].ravel()
        return passing


class Silencefilter(Declared):
    """SILENCEFILTER: a detector finds ranges with voice; a filter joins the stream with them."""

    def build(self, query: Query, repeat: int) -> Stream:
        """Add the detector and the gate."""
        stream = self.source(query, repeat)
        if self.segments:
            return stream.gate(stream.silence(self.alpha))
        ranges = stream.iterate(_kernels.voice_ranges, self.window, self.alpha)
        return ranges.merge(stream.map(_kernels.sample_event)).iterate(_kernels.samples_in_ranges)

    def reference(self) -> npt.NDArray[Any]:
        """Return the windows with voice, computed with numpy in float64."""
        windows = self.recording.reshape(-1, self.window)
        keep = windows.astype(np.float64).std(axis=1) > self.alpha
        passing: npt.NDArray[Any] = windows[keep].ravel()
        return passing


def joined(found: list[Any]) -> npt.NDArray[Any]:
    """Return the samples of collected windows or of (index, value) tuples."""
    if not found:
        return np.zeros(0, np.float32)
    if isinstance(found[0], SigSeg):
        return np.concatenate([np.asarray(segment) for segment in found])
    return np.array([value for _, value in found])
