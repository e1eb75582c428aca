"""All four managers driven together against plain numpy arrays, in any order of operations."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import xstream as xs
from tests.sigseg.samples import RECORD, numbered, shown

EXAMPLES, STEPS_EACH = 120, 100
#: In all; fewer under the sanitizers.
STEPS = 25_000
widths = st.one_of(st.integers(0, 5), st.integers(0, 300))
fractions = st.floats(0, 1)


@dataclass(eq=False)
class Row:
    """One value: what it must show, and the segment that each manager has for it."""

    start: int
    model: npt.NDArray[Any]
    segs: dict[str, xs.SigSeg]

    @property
    def stop(self) -> int:
        return self.start + len(self.model)

    def check(self) -> None:
        for name, seg in self.segs.items():
            assert seg.width == len(self.model), name
            assert not self.model.size or seg.start == self.start, name
            assert np.array_equal(shown(seg), self.model), name


@dataclass(eq=False)
class Export:
    """An array that a segment handed out, which must outlive it unchanged."""

    array: npt.NDArray[Any]
    model: npt.NDArray[Any]
    owner: Any = field(default=None)


class FourManagers(RuleBasedStateMachine):
    """`steps` counts the rules that ran, over all examples: each applies to all four managers."""

    steps = 0
    rows = Bundle("rows")

    @initialize(dtype=st.sampled_from([np.dtype("i2"), np.dtype("f4"), RECORD]))
    def begin(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.timebase = xs.Timebase(rate_hz=1000.0)
        self.managers = {name: xs.memory_manager(name) for name in xs.MANAGER_NAMES}
        self.all_rows: list[Row] = []
        self.exports: list[Export] = []
        self.made = self.turn = 0

    def fresh(self, width: int) -> npt.NDArray[Any]:
        self.made += width
        return numbered(width, self.dtype, self.made)

    def row(self, start: int, model: npt.NDArray[Any], segs: dict[str, xs.SigSeg]) -> Row:
        row = Row(start, model, segs)
        self.all_rows.append(row)
        return row

    def segments(self, samples: npt.NDArray[Any], start: int) -> dict[str, xs.SigSeg]:
        return {
            name: xs.SigSeg(samples, start, self.timebase, mm) for name, mm in self.managers.items()
        }

    # -- making ------------------------------------------------------------------------------

    @rule(target=rows, width=widths, start=st.integers(-50, 50))
    def create(self, width: int, start: int) -> Row:
        samples = self.fresh(width)
        return self.row(start, samples, self.segments(samples, start))

    @rule(target=rows, width=widths, start=st.integers(-50, 50), keeps_a_view=st.booleans())
    def build(self, width: int, start: int, keeps_a_view: bool) -> Row:
        samples, segs = self.fresh(width), {}
        for name, mm in self.managers.items():
            writer = xs.SigSeg.build(width, self.dtype, start, self.timebase, mm)
            writer.array[:] = samples
            view = writer.array[width // 2 :] if keeps_a_view else None
            segs[name] = writer.commit()
            if view is not None:
                view[:] = np.zeros(1, self.dtype)
        return self.row(start, samples, segs)

    @rule(target=rows, row=rows, where=fractions)
    def edit(self, row: Row, where: float) -> Row:
        model, segs = row.model.copy(), {}
        model[int(where * len(model)) :] = np.ones(1, self.dtype)
        for name, seg in row.segs.items():
            with seg.edit() as e:
                e.array[int(where * seg.width) :] = np.ones(1, self.dtype)
            segs[name] = e.segment
        return self.row(row.start, model, segs)

    # -- passing, joining, cutting -----------------------------------------------------------

    @rule(target=rows, row=rows)
    def share(self, row: Row) -> Row:
        return self.row(row.start, row.model, {n: seg.share() for n, seg in row.segs.items()})

    @rule(target=rows, row=rows, width=widths)
    def grow(self, row: Row, width: int) -> Row:
        samples = self.fresh(width)
        more = self.segments(samples, row.stop)
        segs = {name: seg.append(more[name]) for name, seg in row.segs.items()}
        start = row.start if len(row.model) else row.stop
        return self.row(start, np.concatenate([row.model, samples]), segs)

    @rule(
        target=rows,
        row=rows,
        count=st.integers(1, 90),
        width=st.integers(1, 4),
        keep=st.one_of(st.none(), st.integers(1, 60)),
    )
    def accumulate(self, row: Row, count: int, width: int, keep: int | None) -> Row:
        """Many appends in a row, with the front trimmed or not."""
        model, start, segs = row.model, row.start, dict(row.segs)
        for _ in range(count):
            samples = self.fresh(width)
            more = self.segments(samples, start + len(model))
            segs = {name: seg.append(more[name]) for name, seg in segs.items()}
            model = np.concatenate([model, samples])
            if keep is not None and len(model) > keep:
                start, model = start + len(model) - keep, model[-keep:]
                segs = {name: seg.subseg(start, keep) for name, seg in segs.items()}
        return self.row(start, model, segs)

    @rule(target=rows, a=rows, b=rows)
    def append_one_to_another(self, a: Row, b: Row) -> Row:
        joinable = a.stop == b.start or not len(a.model) or not len(b.model)
        if joinable:
            segs = {name: a.segs[name].append(b.segs[name]) for name in self.managers}
            start = a.start if len(a.model) else b.start
            return self.row(start, np.concatenate([a.model, b.model]), segs)
        for name in self.managers:
            with pytest.raises(xs.NotAdjacentError):
                a.segs[name].append(b.segs[name])
        return self.row(a.start, a.model, dict(a.segs))

    @rule(target=rows, row=rows, low=fractions, high=fractions)
    def subseg(self, row: Row, low: float, high: float) -> Row:
        first, stop = sorted((int(low * len(row.model)), int(high * len(row.model))))
        segs = {n: seg.subseg(row.start + first, stop - first) for n, seg in row.segs.items()}
        return self.row(row.start + first, row.model[first:stop], segs)

    @rule(target=rows, row=rows, first=st.integers(-320, 320), stop=st.integers(-320, 320))
    def slice_by_position(self, row: Row, first: int, stop: int) -> Row:
        model = row.model[first:stop]
        begin = row.start + slice(first, stop).indices(len(row.model))[0]
        return self.row(begin, model, {name: seg[first:stop] for name, seg in row.segs.items()})

    @rule(target=rows, row=rows, where=fractions)
    def cut_and_rejoin(self, row: Row, where: float) -> Row:
        cut, width, segs = int(where * len(row.model)), len(row.model), {}
        for name, seg in row.segs.items():
            front = seg.subseg(row.start, cut)
            segs[name] = front.append(seg.subseg(row.start + cut, width - cut))
        return self.row(row.start, row.model, segs)

    # -- reading -----------------------------------------------------------------------------

    @rule(row=rows)
    def materialise(self, row: Row) -> None:
        for seg in row.segs.values():
            array = np.asarray(seg)
            assert not array.flags.writeable
            assert np.array_equal(array, row.model)
            self.exports.append(Export(array, row.model))

    @rule(row=rows)
    def keep_some_chunks(self, row: Row) -> None:
        for seg in row.segs.values():
            position = 0
            for number, chunk in enumerate(seg.chunks()):
                if number % 7 == 0:
                    model = row.model[position : position + len(chunk)]
                    self.exports.append(Export(chunk, model))
                position += len(chunk)

    @rule(row=rows, where=fractions)
    def read_one_sample(self, row: Row, where: float) -> None:
        if len(row.model):
            position = min(int(where * len(row.model)), len(row.model) - 1)
            for seg in row.segs.values():
                assert seg[position] == row.model[position]

    @rule(a=rows, b=rows)
    def compare(self, a: Row, b: Row) -> None:
        equal = len(a.model) == len(b.model) and np.array_equal(a.model, b.model)
        if len(a.model) and a.start != b.start:
            equal = False
        for name, other in zip(xs.MANAGER_NAMES, reversed(xs.MANAGER_NAMES), strict=True):
            assert (a.segs[name] == b.segs[other]) is equal

    # -- letting go --------------------------------------------------------------------------

    @rule(row=consumes(rows))
    def drop(self, row: Row) -> None:
        row.check()
        row.segs.clear()
        self.all_rows.remove(row)

    @rule(which=fractions)
    def drop_an_array(self, which: float) -> None:
        if self.exports:
            export = self.exports.pop(int(which * (len(self.exports) - 1)))
            assert np.array_equal(export.array, export.model)

    @invariant()
    def what_exists_never_changes(self) -> None:
        """One value and one array a step, in turn; all of them at the end."""
        type(self).steps += 1
        self.turn += 1
        if self.all_rows:
            self.all_rows[self.turn % len(self.all_rows)].check()
        if self.exports:
            export = self.exports[self.turn % len(self.exports)]
            assert np.array_equal(export.array, export.model)

    def teardown(self) -> None:
        if not hasattr(self, "managers"):
            return
        for row in self.all_rows:
            row.check()
            row.segs.clear()
        while self.exports:
            export = self.exports.pop()
            assert np.array_equal(export.array, export.model)
            del export
        for mm in self.managers.values():
            if mm.stats().live_segments or mm.stats().live_blocks:
                gc.collect()  # caught errors hold their frames, and those hold segments
            stats = mm.stats()
            assert (stats.live_segments, stats.live_blocks, stats.live_bytes) == (0, 0, 0), mm


@pytest.mark.timeout(1200)
def test_all_four_managers_show_what_plain_arrays_show() -> None:
    # The invariant counts: once after each rule, and once at the beginning of an example. Some
    # examples are shorter than they may be, so there are as many series as it takes.
    FourManagers.steps = 0
    series = 0
    while FourManagers.steps - series * EXAMPLES < STEPS and series < 4:
        series += 1
        run_state_machine_as_test(
            FourManagers,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS_EACH,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    print(f"{FourManagers.steps:,} steps in {series} series")
    assert FourManagers.steps - series * EXAMPLES >= STEPS
