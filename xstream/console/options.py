"""Checks of numbers that a user gives on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable

import typer

from xstream.errors import InputError

__all__ = ["within"]


def within(low: float, high: float) -> Callable[[typer.CallbackParam, float | None], float | None]:
    """Return a callback of `typer.Option` that refuses numbers outside `low` to `high`.

    Unlike `min` and `max` of `typer.Option`, it refuses NaN.
    """

    def check(param: typer.CallbackParam, value: float | None) -> float | None:
        if value is None or low <= value <= high:
            return value
        given = f"{value:g}" if isinstance(value, float) and math.isfinite(value) else value
        raise InputError(f"{param.opts[0]} must be from {low:,} to {high:,}, not {given}")

    return check
