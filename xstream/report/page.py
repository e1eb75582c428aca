"""The frame of every page: one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["document", "machine_line", "paragraphs", "plot_html", "section", "table_html", "write"]

_STYLE = """
:root{color-scheme:light;--ink:#1c2733;--soft:#5b6b7b;--line:#d9e0e7;--tint:#f4f7fa;--mark:#1f4e79}
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);margin:0 auto;max-width:72rem;
padding:1.5rem 1.25rem 4rem;background:#fff}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 .25rem}
h2{font-size:1.25rem;margin:2.2rem 0 .5rem;border-top:1px solid var(--line);padding-top:1.2rem}
h3{font-size:1.02rem;margin:1.4rem 0 .3rem}
p{max-width:46rem;margin:.5rem 0}
.sub{color:var(--soft);font-size:.9rem;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.32rem .8rem .32rem 0;text-align:left;border-bottom:1px solid var(--line);
white-space:nowrap;vertical-align:top}
th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom}
td.n,th.n{text-align:right}
td:first-child{white-space:normal;min-width:8.5rem}
.plot{margin:.5rem 0 1rem;width:100%;height:420px}
.good{color:#18713c}.bad{color:#a61c1c}
nav a{margin-right:1rem}
a{color:var(--mark)}
code{background:var(--tint);padding:.1em .3em;border-radius:3px;font-size:.9em}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--mark)}
@media(max-width:600px){body{padding:1rem .9rem 3rem}}
"""
_NUMBER = re.compile(r"^[-+]?[\d,.]+( ?(%|[kMGT]?B?|ms|s|times|x))?$")


def document(title: str, body: Iterable[str], subtitle: str = "", plots: bool = True) -> str:
    """A whole page; plotly's script is in it once, where there are plots."""
    script = ""
    if plots:
        from plotly.offline import get_plotlyjs

        script = f"<script>{get_plotlyjs()}</script>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>{script}</head><body>"
        f'<h1>{escape(title)}</h1><p class="sub">{escape(subtitle)}</p>'
        f"{''.join(body)}</body></html>\n"
    )


def write(path: Path, text: str) -> None:
    """Whole or not at all: a reader never sees half a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def section(title: str, *parts: str, anchor: str | None = None) -> str:
    """A heading and what stands below it."""
    place = f' id="{escape(anchor)}"' if anchor else ""
    return f"<h2{place}>{escape(title)}</h2>{''.join(parts)}"


def paragraphs(text: str) -> str:
    """Plain text with blank lines between paragraphs; `code` in backquotes."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{_marked(part)}</p>" for part in parts)


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def table_html(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls by itself where the screen is narrow; numbers stand right."""
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


def machine_line(machine: dict[str, Any]) -> str:
    """Where and on what something was measured, in one line."""
    return (
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}, "
        f"Python {machine['python']}, xstream {machine['xstream']}, "
        f"commit {machine['commit'] or 'unknown'}"
    )


def plot_html(figure: Any, number: int) -> str:
    """A plot as a part of a page that has plotly's script already."""
    import plotly.io as pio

    height = f' style="height:{figure.layout.height}px"' if figure.layout.height else ""
    return (
        f'<div class="plot" id="plot{number}"{height}></div><script>'
        f'(function(){{var f={pio.to_json(figure)};Plotly.newPlot("plot{number}",f.data,f.layout,'
        "{responsive:true,displayModeBar:false});})();</script>"
    )
