"""Which window each result of an engine belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from yabench.answers import Answer
from yabench.bindings import Bag, Binding, matched
from yabench.columns import Columns
from yabench.near import NearBindings
from yabench.windows import Window, Windowing

__all__ = ["Pairs", "paired"]


class Pairs:
    """The results of each window by its index, and those that belong to none."""

    def __init__(self) -> None:
        self.of: dict[int, list[Answer]] = defaultdict(list)
        self.stray: list[Answer] = []

    def bindings(self, window: Window) -> Bag:
        """Return the bindings of all results of a window."""
        found: Bag = Bag()
        for answer in self.of.get(window.number, ()):
            found.update(answer.bindings)
        return found

    def columns(self, window: Window) -> Columns | None:
        """Return the same as columns, if all its results came so."""
        parts = [answer.columns for answer in self.of.get(window.number, ())]
        return (
            Columns.joined([part for part in parts if part is not None])
            if None not in parts
            else None
        )

    def arrival_ms(self, window: Window) -> float | None:
        """Return when the last result of a window arrived."""
        times = [answer.time_ms for answer in self.of.get(window.number, ())]
        known = [time for time in times if time is not None]
        return max(known) if known else None


def paired(
    answers: Sequence[Answer],
    windows: Sequence[Window],
    windowing: Windowing,
    expected: Callable[[Window], Bag],
    changed: Callable[[Window, float], bool],
) -> Pairs:
    """Pair results with windows: by the end that they name, else by order of arrival.

    With content-change, `expected` are the bindings of all reports of a window, and `changed` says
    whether the content of a window has changed by some time, since it is active.
    """
    if windowing.policy == "content-change":
        return _pair_changes(answers, windows, windowing, expected, changed)
    pairs, by_end = Pairs(), {window.end: window for window in windows}
    unnamed = []
    for answer in answers:
        window = by_end.get(answer.named_ms) if answer.named_ms is not None else None
        if window is not None:
            pairs.of[window.number].append(answer)
        else:
            unnamed.append(answer)
    _pair_by_arrival(unnamed, windows, windowing.slide_ms, pairs)
    return pairs


def _pair_by_arrival(
    answers: Sequence[Answer], windows: Sequence[Window], slide_ms: int, pairs: Pairs
) -> None:
    """Give each result the first window without one that it may belong to.

    A result may belong to a window if it arrived within the window's span plus one slide. If all
    such windows have a result, it is added to the last of them. A result whose arrival is not known
    belongs to the next window.
    """
    first = 0
    for answer in answers:
        time = answer.time_ms
        while time is not None and first < len(windows) and windows[first].end + slide_ms <= time:
            first += 1
        last = None
        for window in windows[first:]:
            if time is not None and window.scope.start > time:
                break
            last = window
            if window.number not in pairs.of:
                break
        if last is None:
            pairs.stray.append(answer)
        else:
            pairs.of[last.number].append(answer)


def _pair_changes(
    answers: Sequence[Answer],
    windows: Sequence[Window],
    windowing: Windowing,
    expected: Callable[[Window], Bag],
    changed: Callable[[Window, float], bool],
) -> Pairs:
    """Pair the reports of an engine that reports when the content changes.

    A report belongs to the window that was active when it arrived. It belongs to the one before,
    because it may be late by up to one slide, if that one still lacks these bindings, and the
    active window does not, or has not changed yet.
    """
    pairs = Pairs()
    lacking: dict[int, _Lacking] = {}

    def lacked_by(window: Window) -> _Lacking:
        if window.number not in lacking:
            lacking[window.number] = _Lacking(expected(window))
        return lacking[window.number]

    position = 0
    for answer in answers:
        time = answer.named_ms if answer.named_ms is not None else answer.time_ms
        if time is not None:
            position = int(time // windowing.slide_ms)
        active = [windows[i] for i in (position - 1, position) if 0 <= i < len(windows)]
        default = None
        if time is None:
            active = list(windows[max(0, position - 1) :])
        elif active and active[-1].number == position + 1:
            default = active[-1]
            if changed(default, time):
                active.reverse()
        home = next((each for each in active if lacked_by(each).has(answer)), default)
        if home is None:
            pairs.stray.append(answer)
            continue
        if time is None:
            position = home.number - 1
        pairs.of[home.number].append(answer)
        lacked_by(home).take(answer.bindings)
    return pairs


class _Lacking:
    """The bindings that a window still expects."""

    def __init__(self, expected: Bag) -> None:
        self._left = Bag(expected)
        self._near: NearBindings | None = None

    def has(self, answer: Answer) -> bool:
        """Return whether it has all bindings of a report that is not empty."""
        if answer.empty or not self._left:
            return False
        if all(self._left[binding] >= count for binding, count in answer.bindings.items()):
            return True
        # Numbers may be equal within the tolerance only.
        near: Bag = Bag()
        for binding in answer.bindings:
            equal = self._equal_to(binding)
            if not equal:
                return False
            near.update({each: self._left[each] for each in equal if each not in near})
        return matched(near, answer.bindings) == answer.bindings.total()

    def _equal_to(self, binding: Binding) -> list[Binding]:
        """Return the bindings left that equal one within the tolerance."""
        if self._near is None:
            self._near = NearBindings(self._left)
        return [each for each in self._near.equal_to(binding) if self._left[each] > 0]

    def take(self, bindings: Bag) -> None:
        """Remove bindings, or those that equal them: they are not expected once more."""
        for binding, count in bindings.items():
            wanted = count - self._removed(binding, count)
            for near in self._equal_to(binding) if wanted else ():
                wanted -= self._removed(near, wanted)

    def _removed(self, binding: Binding, count: int) -> int:
        """Remove up to `count` of a binding; return how many there were."""
        found = min(count, self._left[binding])
        self._left[binding] -= found
        if not self._left[binding]:
            del self._left[binding]
        return found
