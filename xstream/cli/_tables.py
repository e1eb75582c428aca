"""Print a benchmark's report: tables with borders on a terminal, plain columns elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from xstream.bench.report import Figure, Report

__all__ = ["print_report", "print_table"]


def print_report(report: Report, console: Console) -> None:
    """Print the results of all contenders, further tables, and figures with their targets."""
    shown = (
        (
            result.name, _rate(result.samples_per_second), f"{result.spread:.0%}",
            f"{result.loading_seconds * 1e3:.1f} ms",
        )
        for result in report.results
    )  # fmt: skip
    trials = len(report.results[0].trials)
    by = "" if report.settings["clock"] == "wall" else ", CPU time"
    columns = (f"{report.benchmark}, best of {trials}{by}", "samples/s", "spread", "loading")
    print_table(console, columns, shown)
    for title, names, rows in report.tables:
        console.print(f"\n{title}")
        print_table(console, names, ([str(cell) for cell in row] for row in rows))
    console.print()
    print_table(
        console, ("figure", "value", "", "target", ""), (_figure(each) for each in report.figures)
    )
    for note in filter(None, (*report.notes, report.disturbance)):
        console.print(note, soft_wrap=True)
    console.print(f"checked: {report.checked}", soft_wrap=True)


def _figure(figure: Figure) -> tuple[str, ...]:
    verdict = {True: "reached", False: "NOT REACHED", None: ""}[figure.reached]
    return figure.name, figure.shown, figure.unit, figure.demand, verdict


def _rate(samples_per_second: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if samples_per_second >= size:
            return f"{samples_per_second / size:.2f} {unit}"
    return f"{samples_per_second:.0f}"


def print_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table: with borders on a terminal, in plain columns elsewhere."""
    cells = [list(map(str, row)) for row in rows]
    if console.is_terminal:
        from rich.table import Table

        table = Table(*columns)
        for row in cells:
            table.add_row(*row)
        console.print(table)
        return
    widths = [max(len(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]
    for row in [list(columns), *cells]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())
