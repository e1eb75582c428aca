"""Phrases for measured ratios: the text of an experiment follows from its own figures."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["change", "listed"]

#: Ratios that differ from 1 by less are not significant.
NOTICEABLE = 0.03


def change(ratio: float) -> str:
    """Describe a ratio of two throughputs.

    >>> change(34.1), change(1.61)
    ('a gain of 34 times', 'a gain of 1.61 times')
    >>> change(1.01), change(0.9)
    ('no difference (1.01 times)', 'a loss (0.90 times)')
    """
    if ratio >= 1 + NOTICEABLE:
        return f"a gain of {ratio:,.0f} times" if ratio >= 10 else f"a gain of {ratio:.2f} times"
    if ratio <= 1 - NOTICEABLE:
        return f"a loss ({ratio:.2f} times)"
    return f"no difference ({ratio:.2f} times)"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
