"""Rule sets: how the query differs between the paper, two validators of it and the thesis."""

from __future__ import annotations

from linearroad.rules.brandeis import Brandeis
from linearroad.rules.paper import Paper
from linearroad.rules.thesis import DEFAULT_TARIFF, Tariff, Thesis
from linearroad.rules.walmart import Walmart
from xstream.errors import InputError

__all__ = ["DEFAULT_TARIFF", "RULES", "Paper", "Tariff", "Thesis", "rules_named"]

RULES: dict[str, Paper] = {
    "paper": Paper(),
    "brandeis": Brandeis(),
    "walmart": Walmart(),
    "thesis": Thesis(),
}


def rules_named(name: str, tariff: Tariff | None = None) -> Paper:
    """A rule set by its name; only the thesis has a tariff to choose."""
    if name not in RULES:
        raise InputError(f"--rules must be one of {', '.join(RULES)}, not {name!r}")
    if tariff is None or tariff == DEFAULT_TARIFF:
        return RULES[name]
    if name != "thesis":
        raise InputError("--basetoll, --basecredit and --ftmin require --rules thesis")
    return Thesis(tariff)
