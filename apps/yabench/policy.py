"""Which report policy recorded results follow, where nobody says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from yabench.answers import Answer
from yabench.judge import Judgement, judge
from yabench.oracle import Oracle
from yabench.windows import Windowing

__all__ = ["judge_any", "names_ends"]


def names_ends(answers: Sequence[Answer], windowing: Windowing) -> bool:
    """Return whether all results that name a time name the end of a window."""
    named = [answer.named_ms for answer in answers if answer.named_ms is not None]
    return all(time > 0 and time % windowing.slide_ms == 0 for time in named)


def judge_any(
    oracle: Oracle, windowing: Windowing, answers: Sequence[Answer], gracious: bool = False
) -> Judgement:
    """Judge results by window-close if they name ends of windows, else by the policy that fits.

    Engines that report on window close name the window that they report; those that report changes
    name the time of the change. Where times are neither, the policy with the best mean F1 counts.
    """
    if names_ends(answers, windowing):
        return judge(oracle, replace(windowing, policy="window-close"), answers, gracious)
    candidates = [
        replace(windowing, policy="window-close"),
        replace(windowing, policy="content-change", only_new=True),
        replace(windowing, policy="content-change", only_new=False),
    ]
    found = [judge(oracle, candidate, answers) for candidate in candidates]
    if any((window.delay_ms or 0) < 0 for window in found[0].windows):
        found = [*found[1:], found[0]]  # results came before the window closed
    best = max(found, key=_mean_f1)  # the first of equals
    return judge(oracle, best.windowing, answers, True) if gracious else best


def _mean_f1(found: Judgement) -> float:
    values = []
    for window in found.windows:
        total = window.precision + window.recall
        values.append(2 * window.precision * window.recall / total if total else 0.0)
    return sum(values) / len(values) - found.stray
