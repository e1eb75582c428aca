"""The frame of every page: one self-contained HTML file with the style sheet of all pages.

The style sheet and the scripts are files in `static`; pages contain copies of them, so that a page
can be sent to someone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from xstream.console import whole_file

__all__ = [
    "document",
    "machine_line",
    "origin_html",
    "paragraphs",
    "plots_html",
    "section",
    "static",
    "table_html",
    "write",
]

_NUMBER = re.compile(r"^[-+]?[\d,.]+( ?(%|[kMGT]?B?|ms|s|times|x))?$")
_PLOT = 'class="plot"'
_STATIC = Path(__file__).with_name("static")


def document(
    title: str, body: Iterable[str], machine: Mapping[str, Any], subtitle: str = ""
) -> str:
    """Return a complete page; it contains the library for plots only if it has plots.

    `machine` describes where, when and by which command the figures were measured
    (`bench.report.machine`).
    """
    content = "".join(body)
    scripts = [static("plotly-basic.min.js")] if _PLOT in content else []
    scripts.append(static("page.js"))
    head = "".join(f"<script>{script}</script>" for script in scripts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{static('page.css')}</style>{head}</head><body>"
        f"<h1>{escape(title)}</h1>"
        + (f'<p class="sub">{escape(subtitle)}</p>' if subtitle else "")
        + f"{origin_html(machine)}{content}</body></html>\n"
    )


@cache
def static(name: str) -> str:
    """Return a file that pages contain: the style sheet or a script."""
    return (_STATIC / name).read_text(encoding="utf-8")


def write(path: Path, text: str) -> None:
    """Write a page atomically: a reader never sees half of it."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def section(title: str, *parts: str, anchor: str | None = None) -> str:
    """Return a heading and the parts below it."""
    place = f' id="{escape(anchor)}"' if anchor else ""
    return f"<h2{place}>{escape(title)}</h2>{''.join(parts)}"


def paragraphs(text: str) -> str:
    """Return HTML for plain text: blank lines between paragraphs, code in backquotes."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{_marked(part)}</p>" for part in parts)


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def table_html(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table that scrolls on a narrow screen; numbers are right-aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    numeric = [
        bool(cells) and all(_NUMBER.match(row[i]) or row[i] in ("", "-") for row in cells)
        for i in range(len(columns))
    ]

    def line(tag: str, row: Sequence[str]) -> str:
        kinds = [' class="n"' if right else "" for right in numeric]
        return "".join(
            f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in cells)
    head = f"<thead><tr>{line('th', list(columns))}</tr></thead>"
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def machine_line(machine: Mapping[str, Any]) -> str:
    """Describe the machine of a measurement in one line.

    >>> machine_line({"processor": "Xeon", "cores": 2, "load": 0.5, "xstream": "1.0"})
    'Xeon, 2 cores, load 0.5, xstream 1.0'
    """
    parts = (
        ("processor", "{}"), ("cores", "{} cores"), ("load", "load {:.1f}"),
        ("python", "Python {}"), ("xstream", "xstream {}"), ("commit", "commit {}"),
    )  # fmt: skip
    shown = (form.format(machine[key]) for key, form in parts if machine.get(key) is not None)
    return ", ".join(shown)


def origin_html(machine: Mapping[str, Any], what: str = "Made") -> str:
    """Describe the machine and versions of a result, its date and its command."""
    made = "Date and command were not recorded."
    if machine.get("date"):
        when = datetime.fromisoformat(machine["date"]).astimezone(UTC)
        made = f"{what} on {when:%Y-%m-%d at %H:%M} UTC"
        by = f"by <code>{escape(machine['command'])}</code>" if machine.get("command") else ""
        made = f"{made} {by or 'by a Python program'}"
    return f'<p class="sub origin">{escape(machine_line(machine))}<br>{made}</p>'


def plots_html(figures: Iterable[Any], first: int = 0) -> str:
    """Return plots, numbered from `first`, each below its title; empty plots are left out.

    The titles are headings of the page, because a title inside a plot does not wrap on a phone.
    """
    shown = [figure for figure in figures if not _is_empty(figure)]
    return "".join(_plot_html(figure, first + number) for number, figure in enumerate(shown))


def _is_empty(figure: Any) -> bool:
    """Return whether no trace has a point."""
    if figure.layout.images:  # a heat map
        return False
    for trace in figure.data:
        values = trace.x if _lies(trace) else trace.y
        if values is not None and not all(_is_missing(value) for value in values):
            return False
    return True


def _lies(trace: Any) -> bool:
    return bool(trace.type == "bar" and trace.orientation == "h")


def _is_missing(value: Any) -> bool:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return all(_is_missing(each) for each in value)
    return value is None or bool(value != value)  # NaN is not equal to itself


def _plot_html(figure: Any, number: int) -> str:
    import plotly.io as pio

    title = figure.layout.title.text
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    # The theme of the page replaces plotly's, which takes 7 kB per plot.
    figure.update_layout(title=None, template="none")
    height = f' style="height:{figure.layout.height}px"' if figure.layout.height else ""
    return (
        f'{heading}<div {_PLOT} id="plot{number}"{height}></div>'
        f'<script>figure("plot{number}",{pio.to_json(figure)});</script>'
    )
