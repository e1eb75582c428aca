"""Runs and statistics as HTML tables, for notebooks (`_repr_html_`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xstream.statistics import OperatorStats

__all__ = ["stats_table", "table"]

_CELL = "padding:.15em .8em .15em 0;border-bottom:1px solid #8884;"
COLUMNS = (
    "operator", "tuples", "samples", "emitted", "busy, ms", "share", "queue peak", "dropped",
)  # fmt: skip


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table; all columns but the first are right-aligned.

    >>> table(("operator", "tuples"), [("map", "3")]).count("<td")
    2
    """

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ("left", *("right",) * (len(cells) - 1))
        return "".join(
            f'<{tag} style="{_CELL}text-align:{side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;'
        f'font-variant-numeric:tabular-nums"><thead><tr>{line("th", columns)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def stats_table(stats: Mapping[str, OperatorStats], named: bool = True) -> str:
    """Return the statistics of operators, one per row, with their names or without."""
    busy = sum(each.busy_ns for each in stats.values())
    first = 0 if named else 1
    return table(
        COLUMNS[first:],
        (
            (
                name, f"{each.tuples:,}", f"{each.samples:,}", f"{each.emitted:,}",
                f"{each.busy_ns / 1e6:,.3f}", f"{each.busy_ns / busy:.1%}" if busy else "",
                f"{each.queue_peak:,}", f"{each.dropped:,}",
            )[first:]
            for name, each in stats.items()
        ),
    )  # fmt: skip
