"""The table of answers and response times that commands print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["response_table"]

_TIMES = ("p50", "p99", "p9999", "worst")


def response_table(
    title: str, answers: Mapping[str, int], response_s: Mapping[str, Mapping[str, float]],
    timed: bool = True,
) -> Any:  # fmt: skip
    """A table of the number of answers by kind and, if the run was paced, their response times."""
    from rich.table import Table

    table = Table(title=title, min_width=len(title))
    headings = ("p50 s", "p99 s", "p99.99 s", "worst s", "late") if timed else ()
    for heading in ("answer", "count", *headings):
        table.add_column(heading, justify="left" if heading == "answer" else "right")
    for name, count in answers.items():
        delays = response_s.get(name)
        figures = (
            [*(f"{delays[name]:.3f}" for name in _TIMES), f"{delays['late']:,.0f}"]
            if delays else []
        )  # fmt: skip
        table.add_row(name, f"{count:,}", *figures)
    return table
