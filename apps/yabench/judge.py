"""Judges the results of an engine: precision, recall, delay and sizes of every window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from yabench.answers import Answer
from yabench.bindings import Bag, Binding, Score, bag_size, differing, f1_of, matched, score, shown
from yabench.columns import Comparison, compare
from yabench.oracle import BORDER_POLICIES, Oracle
from yabench.pairs import Pairs, paired
from yabench.reports import content_changed, expected_reports
from yabench.windows import Scope, Window, Windowing

__all__ = ["Judged", "Judgement", "judge"]


@dataclass(frozen=True)
class Judged:
    """One window: how its results compare with the right ones."""

    start: int
    end: int
    precision: float
    recall: float
    actual: int
    expected: int
    #: Arrival of the last result after the end of the window; None if there was no result.
    delay_ms: float | None
    #: Number of items in the window.
    items: int
    #: How far gracious mode moved the borders.
    start_shift_ms: int = 0
    end_shift_ms: int = 0
    #: The first bindings that are missing and that should not be there.
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether nothing is missing and nothing is too much."""
        return self.precision == 1.0 and self.recall == 1.0


@dataclass(frozen=True)
class Judgement:
    """All windows of a test, whether they are right, and what is wrong in one sentence."""

    windowing: Windowing
    gracious: bool
    windows: tuple[Judged, ...]
    #: Results that belong to no window.
    stray: int
    finding: str = ""

    @property
    def right(self) -> bool:
        """Whether every window is right and every result belongs to a window."""
        return not self.stray and all(window.right for window in self.windows)

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as JSON."""
        return {
            "right": self.right,
            "finding": self.finding,
            "policy": self.windowing.policy,
            "only_new": self.windowing.only_new,
            "gracious": self.gracious,
            "size_ms": self.windowing.size_ms,
            "slide_ms": self.windowing.slide_ms,
            "stray": self.stray,
            "windows": [asdict(window) for window in self.windows],
        }


def judge(
    oracle: Oracle,
    windowing: Windowing,
    answers: Sequence[Answer],
    gracious: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Judgement:
    """Compare the results of an engine with the right ones, window by window.

    In gracious mode both borders of each window may move, each way, by up to one slide, to any time
    of the stream; the shift with the best F1 wins, then the smallest, then the earliest.
    """
    from yabench.findings import finding

    answers = _renamed(answers, oracle.variables)
    windows = list(windowing.windows(oracle.times[-1], _last_named(answers, windowing)))
    oracle.prepare([window.scope for window in windows])
    known: dict[int, Bag] = {}

    def expected(window: Window) -> Bag:
        if window.number not in known:
            known[window.number] = expected_reports(oracle, windowing, window, window.scope)
        return known[window.number]

    def changed(window: Window, time_ms: float) -> bool:
        return content_changed(oracle, windowing, window, time_ms)

    pairs = paired(answers, windows, windowing, expected, changed)
    judged = []
    for done, window in enumerate(windows):
        if progress:
            progress(done, len(windows))
        compared = _compared(oracle, windowing, window, pairs)
        if compared is not None and (compared.score.right or not gracious):
            judged.append(_judged(oracle, window, window.scope, compared, pairs))
            continue
        actual, scope, right = pairs.bindings(window), window.scope, expected(window)
        if gracious and not score(right, actual).right:
            scope = _best_scope(oracle, windowing, window, actual)
            right = expected_reports(oracle, windowing, window, scope)
        judged.append(_judged(oracle, window, scope, _general(right, actual), pairs))
    stray = sum(1 for answer in pairs.stray if not answer.empty)
    found = Judgement(windowing, gracious, tuple(judged), stray)

    def moved() -> Judgement:
        return judge(oracle, windowing, answers, gracious=True)

    return replace(found, finding=finding(found, oracle, answers, moved))


def _last_named(answers: Sequence[Answer], windowing: Windowing) -> int:
    """Return the last window end that results with bindings name."""
    if windowing.policy == "content-change":
        return 0
    named = (a.named_ms for a in answers if a.named_ms is not None and not a.empty)
    return max((time for time in named if time % windowing.step_ms == 0), default=0)


def _renamed(answers: Sequence[Answer], variables: Sequence[str]) -> Sequence[Answer]:
    """Return results under the names of the query, where an engine names its columns otherwise."""
    known = set(variables)

    def renamed(answer: Answer) -> Answer:
        given = answer.variables
        if len(given) != len(variables) or not known or set(given) == known:
            return answer
        names = dict(zip(given, variables, strict=True))
        bag: Bag = Bag()
        for binding, count in answer.bindings.items():
            bag[_with_names(binding, names)] += count
        return answer.with_bindings(bag)

    return [renamed(answer) for answer in answers]


def _with_names(binding: Binding, names: dict[str, str]) -> Binding:
    texts = sorted((names.get(name, name), text) for name, text in binding.texts)
    numbers = sorted((names.get(name, name), number) for name, number in binding.numbers)
    return Binding(tuple(texts), tuple(numbers))


def _best_scope(oracle: Oracle, windowing: Windowing, window: Window, actual: Bag) -> Scope:
    """Return the range within one slide of the window that fits the results best."""
    slide, origin = windowing.slide_ms, window.scope
    starts, ends = (_borders(oracle, border, slide) for border in origin)
    if windowing.policy in BORDER_POLICIES and origin.start <= origin.end:
        found = oracle.best_scope(actual, starts, ends, origin)
        if found is not None:
            return found
    size = bag_size(actual)

    def fit(scope: Scope) -> tuple[float, int, int, int]:
        right = expected_reports(oracle, windowing, window, scope)
        shift = abs(scope.start - origin.start) + abs(scope.end - origin.end)
        f1 = f1_of(matched(right, actual), bag_size(right), size)
        return (f1, -shift, -scope.start, -scope.end)

    # With periodic, a report may come before the start of a window that is shorter than its slide.
    scopes = [Scope(start, end) for start in starts for end in ends if start <= end]
    return max([origin, *scopes], key=fit)


def _borders(oracle: Oracle, border: int, slide_ms: int) -> list[int]:
    """Return where a border may be: where it is, and at the times of the stream near it."""
    near = set(oracle.times_in(Scope(border - slide_ms, border + slide_ms + 1)))
    after_last = oracle.times[-1] + 1  # else an end could not move behind the last items
    return sorted({border, *near, *({after_last} if abs(after_last - border) <= slide_ms else ())})


def _compared(
    oracle: Oracle, windowing: Windowing, window: Window, pairs: Pairs
) -> Comparison | None:
    """Compare a window column by column, where results and oracle have columns."""
    if windowing.policy == "content-change":
        return None
    actual = pairs.columns(window)
    right = None if actual is None else oracle.columns(window.scope)
    return None if actual is None or right is None else compare(right, actual)


def _general(right: Bag, actual: Bag) -> Comparison:
    found: Score = score(right, actual)
    missing, unexpected = (Bag(), Bag()) if found.right else differing(right, actual)
    return Comparison(found, sorted(missing), sorted(unexpected))


def _judged(
    oracle: Oracle, window: Window, scope: Scope, found: Comparison, pairs: Pairs
) -> Judged:
    arrival = pairs.arrival_ms(window)
    return Judged(
        window.scope.start,
        window.end,
        *found.score,
        delay_ms=None if arrival is None else arrival - window.end,
        items=oracle.items(window.scope),
        start_shift_ms=scope.start - window.scope.start,
        end_shift_ms=scope.end - window.scope.end,
        missing=tuple(shown(found.missing)),
        unexpected=tuple(shown(found.unexpected)),
    )
