"""Loops over samples: one for all neighbouring stages of one sample; see `_region`."""

from __future__ import annotations

from dataclasses import replace

from xstream._native import lib
from xstream.engine.schema import Segment
from xstream.kernels._each import EachFunction
from xstream.kernels._frame import described
from xstream.kernels._region_text import STAGE, STATUS, RegionText, Value, cast, first_segment
from xstream.kernels.pieces import PART
from xstream.kernels.stage import Stage

__all__ = ["RegionLoops"]


def _reads_parts(stage: Stage) -> bool:
    return stage.code is not None and stage.code.kernel.in_parts


class RegionLoops(RegionText):
    """Writes the loops of stages that run sample by sample."""

    def _loop(self, i: int, values: list[Value]) -> tuple[int, list[Value]]:
        """One loop for all neighbouring stages of one sample: the last one, and what it makes."""
        members = range(i, self._loop_end(i))
        first = first_segment(values)
        assert first is not None
        hoisted = {m: self._hoisted(m, values if m == i else None) for m in members}
        sampled = self._sampled(i, values)
        self.put(f"n{i} = len({self._array(sampled[0])})")
        for value in sampled[1:]:
            with self.block(f"if len({self._array(value)}) != n{i}:"):
                self._fail(i, values, "RERUN")
        last = members[-1]
        types = self._code(last).outputs
        assert types is not None
        spaces = [
            self._space(last, field, type_, first.start, f"n{i}", [])
            for field, type_ in enumerate(types.types)
            if isinstance(type_, Segment)
        ]
        self.put(f"bad{i} = False")
        with self.block(f"for j in range(n{i}):"):
            self._loop_body(members, values, hoisted, spaces)
        with self.block(f"if bad{i}:"):
            self._fail(i, values, "RERUN")
        self._count_loop(members)
        return last, [
            Value(type_, space, first.start)
            for type_, space in zip(types.types, spaces, strict=True)
        ]

    def _loop_end(self, i: int) -> int:
        """The stage after the loop that begins at stage `i`."""
        while i < len(self.stages) and self.stages[i].looped is not None:
            i += 1
        return i

    def _count_loop(self, members: range) -> None:
        for m in members[1:]:
            self.put(f"count(R, {self.tuples_at + m}, 1)")
            self.put(f"count(R, {self.samples_at + m}, n{members[0]})")

    # -- loops that are folded into a statistic ----------------------------------------------------

    def _foldable(self, i: int, values: list[Value]) -> bool:
        """Whether the loop from stage `i` on can be run part by part, as what follows reads them:
        over one input of the region, without scalars, and into one window."""
        end = self._loop_end(i)
        if end == len(self.stages) or not _reads_parts(self.stages[end]):
            return False
        outputs = self._code(end - 1).outputs
        one = len(values) == 1 and values[0].origin >= 0
        return one and outputs is not None and len(outputs) == 1

    def _fold(self, i: int, values: list[Value]) -> int:
        """The function that computes a part of the window; returns the stage that reads it.

        If the loop fails, the region has failed, whatever the statistic makes of the part.
        """
        members = range(i, self._loop_end(i))
        (value,) = values
        assert isinstance(value.type, Segment)
        with self.function(f"fold_{i}", "R, first, out"):
            hoisted = {m: self._hoisted(m, None) for m in members}
            at, dtype = self._input_at(value), self._dtype(value.type)
            self.put(f"whole = readonly(block(word(R, {at}), word(R, {at + 1}), {dtype}))")
            self.put("samples = whole[first : first + len(out)]", f"bad{i} = False")
            with self.block("for j in range(len(out)):"):
                self._loop_body(members, [replace(value, name="samples")], hoisted, ["out"])
            with self.block(f"if bad{i} and word(R, {STATUS}) == 0:"):
                self.put(f"put(R, {STATUS}, {int(lib.XS_REGION_RERUN)})", f"put(R, {STAGE}, {i})")
        self.used |= 1 << value.origin
        outputs = self._code(members[-1]).outputs
        assert outputs is not None
        window = outputs.types[0]
        assert isinstance(window, Segment)
        self.folds[i] = described(window.dtype)
        self.put(f"n{i} = {self._width(value)}")
        self.put(f"c{i} = np.empty(min(n{i}, {PART}), {self._dtype(window)})")
        self.put(f"w{i} = folded_{i}(R, n{i}, c{i})")
        self._count_loop(members)
        end = members[-1] + 1
        self.put(f"count(R, {self.tuples_at + end}, 1)", f"count(R, {self.samples_at + end}, n{i})")
        return end

    def _sampled(self, i: int, values: list[Value]) -> list[Value]:
        each = self._each(i)
        return [
            values[source]
            for source, sampled in zip(each.sources, each.sampled, strict=True)
            if sampled
        ]

    def _each(self, i: int) -> EachFunction:
        each = self.stages[i].looped
        assert each is not None
        return each

    def _hoisted(self, m: int, values: list[Value] | None) -> dict[int, str]:
        """Arguments of parameters that are the same for all samples, by number."""
        each, stage = self._each(m), self.stages[m]
        self._frame(m)
        arguments, _ = self._words(m)
        fields = len(stage.inputs)
        found = {}
        for number, source in enumerate(each.sources):
            if each.sampled[number]:
                continue
            name = f"g{m}_{number}"
            if source >= fields:
                expression = arguments[source - fields]
            else:
                assert values is not None
                expression = values[source].name
            self.put(f"{name} = {each.argument(number, expression)}")
            found[number] = name
        return found

    def _loop_body(
        self,
        members: range,
        values: list[Value],
        hoisted: dict[int, dict[int, str]],
        spaces: list[str],
    ) -> None:
        """The functions of all stages on one sample."""
        samples = [f"{value.name}[j]" for value in values]
        for m in members:
            each = self._each(m)
            given = [
                samples[source] if sampled else hoisted[m][number]
                for number, (source, sampled) in enumerate(
                    zip(each.sources, each.sampled, strict=True)
                )
            ]
            self.put(f"q{m} = tried(F{m}, each_{m}, ({', '.join(given)}, ))")
            with self.block(f"if q{m}[0]:"):
                self.put(f"bad{members[0]} = True", "break")
            samples = []
            for field, dtype in enumerate(each.returns):
                item = f"q{m}[1][{field}]" if each.several else f"q{m}[1]"
                self.put(f"y{m}_{field} = {cast(dtype.name, item)}")
                samples.append(f"y{m}_{field}")
        for space, sample in zip(spaces, samples, strict=True):
            self.put(f"{space}[j] = {sample}")
