"""Pages that applications store with their results, as plain data.

A page is {"title": text, "machine": ..., "sections": [...]}, where `machine` is the result of
`bench.report.machine`. A section has any of: `title`; `text`, paragraphs with blank lines between
them; `verdict`, an emphasised sentence; `table`, with `columns` and `rows`; and `plots`, figures as
plotly's JSON. An application writes a page together with its own data, and `xstream report` shows
it without knowing the application.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from xstream.report.page import origin_html, paragraphs, plots_html, section, table_html
from xstream.report.plots import graph_objects

__all__ = ["Section", "page_parts", "plain_section"]

Section = dict[str, Any]


def plain_section(
    title: str,
    text: str = "",
    *,
    verdict: str = "",
    table: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None,
    plots: Sequence[Any] = (),
) -> Section:
    """Return a section as plain data.

    >>> plain_section("Steps", table=(("L",), [(10,)]))["table"]
    {'columns': ['L'], 'rows': [['10']]}
    """
    found: Section = {"title": title, "text": text, "verdict": verdict}
    if table is not None:
        rows = [[str(cell) for cell in row] for row in table[1]]
        found["table"] = {"columns": list(table[0]), "rows": rows}
    if plots:
        found["plots"] = [json.loads(figure.to_json()) for figure in plots]
    return found


def page_parts(page: Mapping[str, Any], first_plot: int = 0) -> list[str]:
    """Return the parts of a page; all data in it is treated as text, never as markup."""
    parts = [origin_html(page["machine"])]
    for found in page["sections"]:
        text = _section_html(found, first_plot)
        first_plot += text.count('class="plot"')
        parts.append(text)
    return parts


def _section_html(found: Section, first_plot: int) -> str:
    parts = []
    if found.get("verdict"):
        parts.append(f"<p><strong>{escape(found['verdict'])}</strong></p>")
    parts.append(paragraphs(found.get("text", "")))
    if table := found.get("table"):
        parts.append(table_html(table["columns"], table["rows"]))
    if found.get("plots"):
        figure_type = graph_objects().Figure
        parts.append(plots_html([figure_type(figure) for figure in found["plots"]], first_plot))
    return section(found["title"], *parts) if found.get("title") else "".join(parts)
