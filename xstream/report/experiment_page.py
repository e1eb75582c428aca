"""The page of an experiment: the findings of the paper, ours, plots and all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xstream.bench.experiment import Plot, Row, summary
from xstream.bench.report import shown_value
from xstream.report import plots
from xstream.report.page import document, machine_line, paragraphs, plots_html, section, table_html

__all__ = ["experiment_page", "experiment_parts", "experiment_text", "figure_rows"]


def drawn(plot: Plot, rows: Sequence[Row]) -> Any:
    """Draw the means of the rows of a plot, with their 95 % confidence intervals."""
    wanted = [row for row in rows if all(row.get(k) == v for k, v in plot.where.items())]
    series: dict[str, list[tuple[Any, float, float]]] = {}
    for key, (mean, half) in summary(wanted, [*plot.by, plot.x], plot.value).items():
        name = ", ".join(map(str, key[:-1]))
        series.setdefault(name, []).append((key[-1], mean * plot.scale, half * plot.scale))
    if plot.kind == "bars":
        return plots.bars(plot.title, plot.x_title, plot.y_title, series, plot.log_y)
    return plots.lines(plot.title, plot.x_title, plot.y_title, series, plot.log_x, plot.log_y)


def figure_rows(figures: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row for each figure, with its target."""
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        asked = ""
        if figure["floor"] is not None:
            asked = f"at least {figure['floor']:g}"
        elif figure["ceiling"] is not None:
            asked = f"at most {figure['ceiling']:g}"
        verdict = {True: "reached", False: "not reached", None: ""}[figure["reached"]]
        rows.append((figure["name"], shown_value(figure["value"]), figure["unit"], asked, verdict))
    return rows


def experiment_parts(found: dict[str, Any], first_plot: int = 0) -> list[str]:
    """Return the parts of the page of an outcome, which is plain data."""
    drawings = [Plot(**plot) for plot in found["plots"]]
    return [
        section("What the paper found", paragraphs(found["paper"])),
        section(
            "What we find", paragraphs(found["text"]),
            table_html(("figure", "value", "", "target", ""), figure_rows(found["figures"])),
        ),
        plots_html((drawn(plot, found["rows"]) for plot in drawings), first_plot),
        section(
            "Means of all trials", table_html(found["table"]["columns"], found["table"]["rows"])
        ),
    ]  # fmt: skip


def subtitle(found: dict[str, Any]) -> str:
    """Say how the experiment was measured."""
    by = "wall-clock time" if found["clock"] == "wall" else "CPU time"
    return (
        f"{found['scale'].capitalize()} size, {found['trials']} trials in alternation, {by}; "
        "whiskers are 95 % confidence intervals."
    )


def experiment_page(found: dict[str, Any]) -> str:
    """Return the page as HTML."""
    return document(found["title"], experiment_parts(found), found["machine"], subtitle(found))


def experiment_text(found: dict[str, Any]) -> str:
    """Return the page as Markdown, for readers of the source tree."""

    def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        lines = ["| " + " | ".join(cells) + " |" for cells in [columns, *rows]]
        return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])

    figures = table(("figure", "value", "unit", "target", "verdict"), figure_rows(found["figures"]))
    means = table(found["table"]["columns"], found["table"]["rows"])
    return (
        f"# {found['title']}\n\n{subtitle(found)} {machine_line(found['machine'])}.\n\n"
        f"## What the paper found\n\n{found['paper'].strip()}\n\n"
        f"## What we find\n\n{found['text'].strip()}\n\n{figures}\n\n"
        f"## Means of all trials\n\n{means}\n"
    )
