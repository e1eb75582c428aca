"""What is wrong with the results of an engine, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yabench.answers import Answer
from yabench.bindings import Bag, matched
from yabench.oracle import BORDER_POLICIES, Oracle
from yabench.windows import Scope

if TYPE_CHECKING:
    from yabench.judge import Judged, Judgement

__all__ = ["finding"]


#: With more bindings than this, a finding says what is missing but does not look for the reason.
MOST_BINDINGS = 2_000_000
#: Where more times lie within a slide, no shift is looked for without gracious mode.
MOST_TIMES_PER_SLIDE = 1000
#: The same where the query must be evaluated for each pair of borders.
MOST_TIMES_EVALUATED = 40


def finding(
    found: Judgement,
    oracle: Oracle,
    answers: Sequence[Answer],
    gracious: Callable[[], Judgement],
) -> str:
    """Return one sentence on what is wrong, or on what is right.

    `gracious` judges the same answers in gracious mode, to see whether windows are shifted.
    """
    wrong = [window for window in found.windows if not window.right]
    if not wrong and not found.stray:
        return _right(found)
    if all(answer.empty for answer in answers):
        return f"The engine reported no bindings at all; {len(wrong)} windows should have some."
    shifted = _shifted(found, oracle, gracious)
    reason = shifted or _reason(found, wrong, oracle, answers)
    if not wrong:
        return f"All windows are right, but {reason}."
    first = wrong[0]
    example = ""
    if first.missing:
        example = f"; first missing, in the window that ends at {first.end} ms: {first.missing[0]}"
    elif first.unexpected:
        example = (
            f"; first unexpected, in the window that ends at {first.end} ms: {first.unexpected[0]}"
        )
    count = f"{len(wrong)} of {len(found.windows)} windows are wrong"
    return f"{count}: {reason}{example}."


def _right(found: Judgement) -> str:
    moved = [w for w in found.windows if w.start_shift_ms or w.end_shift_ms]
    late = _lateness(found)
    if not moved:
        return f"All {len(found.windows)} windows are right{late}."
    starts, ends = (sorted(w.start_shift_ms for w in moved), sorted(w.end_shift_ms for w in moved))
    return (
        f"All {len(found.windows)} windows are right once borders may move: in {len(moved)} "
        f"windows the start moves by {_range(starts)} and the end by {_range(ends)}{late}."
    )


def _lateness(found: Judgement) -> str:
    delays = [window.delay_ms for window in found.windows if window.delay_ms is not None]
    late = sum(1 for delay in delays if delay >= found.windowing.slide_ms)
    if not late:
        return ""
    return f", but {late} of them arrive late, by one slide or more (up to {max(delays):.0f} ms)"


def _range(values: Sequence[int]) -> str:
    low, high = values[0], values[-1]
    return f"{low:+d} ms" if low == high else f"{low:+d} to {high:+d} ms"


def _shifted(found: Judgement, oracle: Oracle, gracious: Callable[[], Judgement]) -> str:
    """Return by how much the windows of an engine are shifted, if most of them are."""
    slides = oracle.times[-1] / found.windowing.slide_ms + 1
    size = sum(window.actual + window.expected for window in found.windows)
    fast = oracle.finds_borders and found.windowing.policy in BORDER_POLICIES
    most = MOST_TIMES_PER_SLIDE if fast else MOST_TIMES_EVALUATED
    dense = len(oracle.times) / slides > most or size > MOST_BINDINGS
    if found.gracious or found.stray or dense:
        return ""
    moved = gracious()
    wrong = [w for w in moved.windows if w.start_shift_ms or w.end_shift_ms]
    with_results = sum(1 for window in found.windows if window.actual or window.expected)
    if not moved.right or 2 * len(wrong) <= with_results:
        return ""
    starts, ends = (sorted(w.start_shift_ms for w in wrong), sorted(w.end_shift_ms for w in wrong))
    return (
        f"the engine's windows are shifted, all are right once their start moves by "
        f"{_range(starts)} and their end by {_range(ends)}{_lateness(found)}"
    )


def _reason(
    found: Judgement, wrong: Sequence[Judged], oracle: Oracle, answers: Sequence[Answer]
) -> str:
    """Return the reason that explains most of what is missing or unexpected."""
    missing = sum(1 for window in wrong if window.recall < 1)
    unexpected = sum(1 for window in wrong if window.precision < 1)
    late = _lateness(found)
    if found.stray and not missing and not unexpected:
        return f"{found.stray} results arrived when no window could expect them"
    if not unexpected:
        elsewhere = sum(1 for window in wrong if not window.actual)
        if elsewhere == len(wrong):
            return f"they have no results although there should be some{late}"
        return f"bindings are lost, the recall falls to {_lowest(wrong, 'recall')}{late}"
    if sum(window.actual + window.expected for window in found.windows) > MOST_BINDINGS:
        return f"bindings are both missing and unexpected{late}"
    reported: Bag = Bag()
    for answer in answers:
        reported.update(answer.bindings)
    gone = _items_kept(found, wrong, oracle, reported)
    if gone:
        return f"they contain bindings of items that had left the window before{late}"
    if missing and _only_moved(found, oracle, reported):
        return (
            "bindings are in a window before or after their own, so the engine's windows are "
            f"shifted (gracious mode finds by how much){late}"
        )
    if not missing:
        return f"bindings are too many, the precision falls to {_lowest(wrong, 'precision')}{late}"
    return f"values differ, or bindings are both missing and unexpected{late}"


def _lowest(wrong: Sequence[Judged], what: str) -> str:
    return f"{min(getattr(window, what) for window in wrong):.3g}"


def _items_kept(found: Judgement, wrong: Sequence[Judged], oracle: Oracle, reported: Bag) -> bool:
    """Return whether there are bindings that no window has, but a longer one would have."""
    if not oracle.monotone:
        return False
    last = found.windows[-1].end
    everything = oracle.results(Scope(0, last))
    windows: Bag = Bag()
    for window in found.windows:
        windows |= oracle.results(Scope(window.start, window.end))
    beyond = Bag({binding: 1 for binding in reported if binding not in windows})
    return bool(beyond) and matched(everything, beyond) > 0


def _only_moved(found: Judgement, oracle: Oracle, reported: Bag) -> bool:
    """Return whether all that is reported is the result of some window."""
    windows: Bag = Bag()
    for window in found.windows:
        windows |= oracle.results(Scope(window.start, window.end))
    known = Bag(dict.fromkeys(reported, 1))
    return matched(windows, known) == len(known)
