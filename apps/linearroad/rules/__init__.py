"""Rule sets: how the query differs between the paper and two existing validators."""

from __future__ import annotations

from linearroad.rules.brandeis import Brandeis
from linearroad.rules.paper import Paper
from linearroad.rules.walmart import Walmart
from xstream.errors import InputError

__all__ = ["RULES", "Paper", "rules_named"]

RULES: dict[str, Paper] = {"paper": Paper(), "brandeis": Brandeis(), "walmart": Walmart()}


def rules_named(name: str) -> Paper:
    """A rule set by its name."""
    if name not in RULES:
        raise InputError(f"--rules must be one of {', '.join(RULES)}, not {name!r}")
    return RULES[name]
