"""Loops over samples: one for all neighbouring stages of one sample; see `_region`."""

from __future__ import annotations

from xstream.engine.schema import Segment
from xstream.kernels._each import EachFunction
from xstream.kernels._region_text import RegionText, Value, cast, first_segment

__all__ = ["RegionLoops"]


class RegionLoops(RegionText):
    """Writes the loops of stages that run sample by sample."""

    def _loop(self, i: int, values: list[Value]) -> tuple[int, list[Value]]:
        """One loop for all neighbouring stages of one sample: the last one, and what it makes."""
        end = i
        while end < len(self.stages) and self.stages[end].looped is not None:
            end += 1
        members = range(i, end)
        first = first_segment(values)
        assert first is not None
        hoisted = {m: self._hoisted(m, values if m == i else None) for m in members}
        sampled = self._sampled(i, values)
        self.put(f"n{i} = len({self._array(sampled[0])})")
        for value in sampled[1:]:
            with self.block(f"if len({self._array(value)}) != n{i}:"):
                self._fail(i, values, "RERUN")
        last = end - 1
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
        for m in members[1:]:
            self.put(f"count(R, {self.tuples_at + m}, 1)", f"count(R, {self.samples_at + m}, n{i})")
        return last, [
            Value(type_, space, first.start)
            for type_, space in zip(types.types, spaces, strict=True)
        ]

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
