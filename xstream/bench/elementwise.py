"""One element-wise map and ten in a row, against bare loops (the ratios of a compiled query)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream.bench import _kernels
from xstream.bench.contender import contender
from xstream.bench.queries import Declared, Engine
from xstream.bench.recording import read_recording, tiled, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import Result, Stopwatch, Trial, interleave
from xstream.query import Query
from xstream.stream import Stream

__all__ = ["Elementwise", "elementwise"]

FACTOR = 1.01
#: The bare loop over ten maps has ten multiplications written out.
STAGES = (1, 10)
#: Ctrl-C is noticed between calls of a bare loop.
_SAMPLES_A_CALL = 100_000_000
#: Where the arrays of a bare loop lie, in bytes.
_PAGE, _APART = 4096, 1024
_BARE_FLOOR, _PEER_FLOOR = 0.8, 10.0


@dataclass(frozen=True)
class Elementwise(Declared):
    """A chain of maps that multiply every sample by a constant."""

    each: bool = True
    factor: Any = FACTOR

    def build(self, query: Query, repeat: int) -> Stream:
        """A chain."""
        stream = self.source(query, repeat)
        for _ in range(self.operators):
            stream = stream.map(_kernels.gain_each if self.each else _kernels.gain, self.factor)
        return stream

    def reference(self) -> npt.NDArray[Any]:
        """The products by numpy, rounded to float32 after every map."""
        samples = self.recording
        for _ in range(self.operators):
            samples = samples * np.float32(self.factor)
        return samples


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write the maps."""

    name: str
    each: bool
    factor: Any = field(default=FACTOR)
    fuse: bool = True


PLAIN, EACH = Form("kernel", each=False), Form("each=True", each=True)
FORMS = (
    EACH,
    PLAIN,
    Form("each=True, np.float32", each=True, factor=np.float32(FACTOR)),
    Form("kernel, np.float32", each=False, factor=np.float32(FACTOR)),
    Form("each=True, fuse=False", each=True, fuse=False),
    Form("kernel, fuse=False", each=False, fuse=False),
)
BUFFER, ALLOCATING = "bare loop into a buffer", "bare loop, allocating"


@dataclass(frozen=True, slots=True)
class Place:
    """A recording of some size: in the cache, or in memory."""

    name: str
    recording: npt.NDArray[Any] = field(repr=False)
    #: Whether a trial is one pass over it.
    once: bool
    forms: tuple[Form, ...]


def elementwise(settings: Settings) -> Report:
    """Multiply by a constant once and ten times, in cache and in memory."""
    samples, rate_hz = read_recording(settings.input)
    small = whole_windows(samples, settings.window)
    places = [Place("in cache", small, once=False, forms=FORMS)]
    if settings.megabytes:
        large = tiled(small, settings.megabytes)
        places.append(Place(f"{settings.megabytes:g} MB", large, once=True, forms=(EACH, PLAIN)))
    contenders = {
        name: trial for place in places for name, trial in _contenders(settings, place, rate_hz)
    }
    results = interleave(contenders, settings.trials, settings.progress)
    report = Report("elementwise", settings.to_json(), list(results.values()))
    report.checked = "every sample of one pass and its type, and their number in each trial"
    for place in places:
        report.figures.extend(_against_bare(results, place))
    report.figures.extend(_among_ourselves(results, places[0]))
    if settings.peers:
        _add_peers(report, settings, small, rate_hz, results)
    return report


def _name(form: str, stages: int, place: Place) -> str:
    return f"{stages} map{'s' * (stages > 1)}, {form}, {place.name}"


def _contenders(
    settings: Settings, place: Place, rate_hz: float
) -> Iterator[tuple[str, Callable[[], Trial]]]:
    for stages in STAGES:
        repeat = 1
        for form in place.forms:
            if stages == 1 and not form.fuse:
                continue  # there is nothing to fuse with
            declared = Elementwise(
                place.recording, settings.window, rate_hz, stages, "kernel", each=form.each,
                factor=form.factor,
            )  # fmt: skip
            engine = Engine(
                settings.scheduler, settings.memory, clock=settings.clock, fuse=form.fuse
            )
            trial = contender(settings, declared, engine, once=place.once)
            if form is EACH:
                repeat = 1 if place.once else trial().samples // len(place.recording)
            yield _name(f"xstream, {form.name}", stages, place), trial
        wanted = Elementwise(place.recording, settings.window, rate_hz, stages).reference()
        for name in (BUFFER, ALLOCATING):
            bare = BareLoop(place.recording, settings.window, stages, name == ALLOCATING)
            yield _name(name, stages, place), bare.contender(wanted, repeat, settings.clock)


def _placed(length: int, low_bits: int) -> npt.NDArray[np.float32]:
    """Zeros at an address with these low twelve bits.

    The speed of a bare loop depends on them by up to a factor of two, and numpy's memory may lie
    anywhere. xstream aligns its blocks to cache lines, and keeps results away from the low bits of
    what they are made of. The bare loop gets the same: this is where it is fastest.
    """
    memory = np.zeros(4 * length + _PAGE, np.uint8)
    at = (low_bits - memory.ctypes.data) % _PAGE
    return memory[at : at + 4 * length].view(np.float32)


@dataclass(frozen=True, slots=True)
class BareLoop:
    """The same arithmetic as one compiled loop, without an engine."""

    samples: npt.NDArray[Any] = field(repr=False)
    window: int
    stages: int
    allocating: bool

    def contender(self, wanted: npt.NDArray[Any], repeat: int, clock: str) -> Callable[[], Trial]:
        """A trial that passes so often over the samples."""
        samples = _placed(len(self.samples), 0)
        samples[:] = self.samples
        most = max(1, _SAMPLES_A_CALL // len(samples))

        def trial() -> Trial:
            last = np.zeros(0, np.float32)
            with Stopwatch() as watch:
                for done in range(0, repeat, most):
                    last = self._run(samples, min(most, repeat - done))
            if not np.array_equal(last, wanted[-self.window :]):
                raise AssertionError("the bare loop's last window is not the reference's")
            return watch.trial(len(samples) * repeat, clock)

        return trial

    def _run(self, samples: npt.NDArray[Any], times: int) -> npt.NDArray[Any]:
        from xstream.bench import _scaling

        ten, factor = self.stages > 1, np.float32(FACTOR)
        if self.allocating:
            last: npt.NDArray[Any] = _scaling.scale_allocating(
                samples, self.window, factor, ten, times
            )
            return last
        out = _placed(self.window, _APART)
        _scaling.scale_into(samples, self.window, factor, out, ten, times)
        return out


def _speed(results: dict[str, Result], form: str, stages: int, place: Place) -> float:
    return results[_name(form, stages, place)].samples_per_second


def _against_bare(results: dict[str, Result], place: Place) -> Iterator[Figure]:
    for stages in STAGES:
        bare = _speed(results, BUFFER, stages, place)
        for form in (EACH, PLAIN):
            share = _speed(results, f"xstream, {form.name}", stages, place) / bare
            what = f"{_name(form.name, stages, place)}, of one bare loop into a buffer"
            # Only loops over single samples can become one loop.
            floor = _BARE_FLOOR if stages == 1 or form is EACH else None
            yield Figure(what, share, "times", floor)


def _among_ourselves(results: dict[str, Result], place: Place) -> Iterator[Figure]:
    stages = STAGES[-1]
    for form in (EACH, PLAIN):
        speed = _speed(results, f"xstream, {form.name}", stages, place)
        for other in ("np.float32", "fuse=False"):
            ratio = speed / _speed(results, f"xstream, {form.name}, {other}", stages, place)
            what = f"{stages} maps, {form.name}, over the same with {other}"
            yield Figure(what, ratio, "times")


def _add_peers(
    report: Report, settings: Settings, recording: npt.NDArray[Any], rate_hz: float,
    results: dict[str, Result],
) -> None:  # fmt: skip
    """GNU Radio's blocks for the same: one, and ten in a row."""
    from xstream.bench.peers import measure_peers

    place = Place("in cache", recording, once=False, forms=())
    for stages in STAGES:
        declared = Elementwise(recording, settings.window, rate_hz, stages)
        found, missing = measure_peers("elementwise", declared, settings, only=("GNU Radio",))
        report.results.extend(found.values())
        report.notes.extend(note for note in missing if note not in report.notes)
        ours = _speed(results, f"xstream, {EACH.name}", stages, place)
        for name, peer in found.items():
            floor = _PEER_FLOOR if stages == STAGES[-1] else None
            gain = ours / peer.samples_per_second
            what = f"{_name(EACH.name, stages, place)}, over {name}"
            report.figures.append(Figure(what, gain, "times", floor))
