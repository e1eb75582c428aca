"""The page of `validate --report`: one HTML file that needs nothing else."""

from __future__ import annotations

import csv
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from linearroad.files import whole
from linearroad.validation.answers import TYPES
from linearroad.validation.delays import BINS_PER_DECADE
from linearroad.validation.validate import Shown
from linearroad.validation.verdict import KINDS, Verdict

__all__ = ["write_report"]

COLORS = ("#1f4e79", "#c0392b", "#2e8b57", "#b8860b", "#6a3d9a")
RATE_S = 10  # the rate of input is a mean over so many seconds
STYLE = """
:root{color-scheme:light}
body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:0 auto;padding:1.5em 1em 4em;
  color:#222}
h1{font-size:1.6em;margin:0 0 .4em}h2{font-size:1.1em;margin:2em 0 0}
.verdict{padding:.8em 1em;border-left:6px solid;border-radius:4px;font-size:1.05em}
.passed{background:#eaf6ee;border-color:#2e8b57}.failed{background:#fbecea;border-color:#c0392b}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.93em;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.25em .8em .25em 0;text-align:right;border-bottom:1px solid #e4e4e4}
th:first-child,td:first-child{text-align:left}th{font-weight:600;color:#555}
table.words td,table.words th{text-align:left;vertical-align:top}
table.words td:last-child{white-space:normal;min-width:16em}
.bad{color:#c0392b;font-weight:600}.note{color:#666;font-size:.93em}
"""


def _lines(
    verdict: Verdict, value: Callable[[dict[str, Any]], float | None], **line: Any
) -> list[Any]:
    """One line per type over the minutes of the stream."""
    traces = []
    for number, name in enumerate(TYPES):
        rows = [row for row in verdict.minutes if row["type"] == number]
        points = [(row["minute"], y) for row in rows if (y := value(row)) is not None]
        if points:
            x, heights = zip(*points, strict=True)
            style = {"color": COLORS[number], **line}
            traces.append(go.Scatter(x=x, y=heights, name=name, mode="lines+markers", line=style,
                                     marker={"size": 4}))  # fmt: skip
    return traces


def _shares(verdict: Verdict) -> Any:
    """Precision, and recall dashed beside it."""
    figure = go.Figure(_lines(verdict, lambda row: 100 * row["precision"]))
    for trace in _lines(verdict, lambda row: 100 * row["recall"], dash="dot"):
        figure.add_trace(trace.update(name=f"{trace.name}, recall", showlegend=False))
    lowest = min(
        (100 * min(row["precision"], row["recall"]) for row in verdict.minutes), default=100
    )
    return figure.update_layout(
        title="Precision (solid) and recall (dotted)", xaxis_title="minute", yaxis_title="%",
        yaxis_range=[min(lowest, 99) - 1, 100.5],
    )  # fmt: skip


def _counts(verdict: Verdict) -> Any:
    """Answers, and the expected ones dotted; kinds differ a thousandfold, hence logarithms."""
    figure = go.Figure(_lines(verdict, lambda row: row["answered"] or None))
    for trace in _lines(verdict, lambda row: row["expected"] or None, dash="dot"):
        figure.add_trace(trace.update(name=f"{trace.name}, expected", showlegend=False))
    return figure.update_layout(
        title="Answers (solid) and expected answers (dotted) a minute", xaxis_title="minute",
        yaxis_type="log", yaxis={"dtick": 1},
    )  # fmt: skip


def _delay(verdict: Verdict) -> Any:
    """The 99th percentile, and the worst answer of each minute."""
    figure = go.Figure(
        _lines(verdict, lambda row: row["delay_s"]["p99"] if row.get("delay_s") else None)
    )
    worst = _lines(verdict, lambda row: row["delay_s"]["worst"] if row.get("delay_s") else None)
    for trace in worst:
        trace.update(name=f"{trace.name}, worst", mode="markers", showlegend=False)
        figure.add_trace(trace.update(marker={"symbol": "line-ew-open", "size": 8}))
    return figure.update_layout(
        title="Delay: 99th percentile (lines) and worst (dashes)", xaxis_title="minute",
        yaxis_title="s", yaxis_rangemode="tozero",
    )  # fmt: skip


def _distribution(verdict: Verdict) -> Any:
    figure = go.Figure()
    for number, name in enumerate(TYPES):
        bins = sorted((row["bin"], row["answers"]) for row in verdict.histogram
                      if row["type"] == number)  # fmt: skip
        total = sum(answers for _, answers in bins)
        if total:
            figure.add_trace(
                go.Scatter(
                    x=[10 ** (at / BINS_PER_DECADE) / 1000 for at, _ in bins],
                    y=[100 * answers / total for _, answers in bins],
                    name=name,
                    mode="lines",
                    line={"color": COLORS[number], "shape": "hv"},
                )
            )
    return figure.update_layout(
        title="Distribution of delays", xaxis_title="s", xaxis_type="log",
        xaxis_dtick=1, yaxis_title="% of the type's answers",
    )  # fmt: skip


def _rate(verdict: Verdict) -> Any:
    seconds = verdict.rows_by_second
    bins = range(verdict.last_second // RATE_S + 1)
    rate = [sum(seconds.get(RATE_S * at + i, 0) for i in range(RATE_S)) / RATE_S for at in bins]
    line = go.Scatter(x=[RATE_S * (at + 0.5) / 60 for at in bins], y=rate, mode="lines",
                      line={"color": COLORS[0]}, name="rows")  # fmt: skip
    return go.Figure(line).update_layout(
        title="Input: rows a second of the stream", xaxis_title="minute", yaxis_title="rows/s",
        yaxis_rangemode="tozero",
    )  # fmt: skip


def _timeline(directory: Path) -> dict[str, list[float]]:
    """The columns of `timeline.csv`, if the run wrote one; what is no number is left out."""
    path = directory / "timeline.csv"
    if not path.is_file():
        return {}
    columns: dict[str, list[float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            try:
                values = {name: float(text) for name, text in row.items() if name}
            except (TypeError, ValueError):
                continue  # the last line of a run that was killed
            for name, value in values.items():
                columns.setdefault(name, []).append(value)
    return columns


def _resources(directory: Path) -> list[Any]:
    columns = _timeline(directory)
    minutes = [second / 60 for second in columns.get("stream_s", [])]
    shown = (
        ("memory_bytes", "Memory of the run", "MiB", 2**20),
        ("lag_s", "How far the run was behind its schedule", "stream s", 1),
    )
    figures = []
    for name, title, unit, scale in shown:
        if minutes and name in columns:
            y = [value / scale for value in columns[name]]
            line = go.Scatter(x=minutes, y=y, mode="lines", line={"color": COLORS[0]})
            figures.append(go.Figure(line).update_layout(
                title=title, xaxis_title="minute", yaxis_title=unit, yaxis_rangemode="tozero"
            ))  # fmt: skip
    if minutes and {"cpu_s", "wall_s"} <= set(columns):
        cpu, wall = columns["cpu_s"], columns["wall_s"]
        steps = [
            (minutes[i], 100 * (cpu[i] - cpu[i - 1]) / (wall[i] - wall[i - 1]))
            for i in range(1, len(cpu)) if wall[i] > wall[i - 1]
        ]  # fmt: skip
        line = go.Scatter(x=[at for at, _ in steps], y=[y for _, y in steps], mode="lines",
                          line={"color": COLORS[0]})  # fmt: skip
        figures.append(go.Figure(line).update_layout(
            title="Processor of the run", xaxis_title="minute", yaxis_title="% of one core",
            yaxis_rangemode="tozero",
        ))  # fmt: skip
    return figures


def _table(head: list[str], rows: list[list[str]], kind: str = "") -> str:
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class='wide'><table class='{kind}'><tr>{cells}</tr>{body}</table></div>"


def _types(verdict: Verdict) -> str:
    kinds = [kind for kind in KINDS if kind in KINDS[:4] or verdict.count(kind)]
    head = ["", "expected", "answered", "right", *kinds, "precision", "recall"]
    if verdict.paced:
        head += ["p50 s", "p99 s", "worst s", "limit s"]
    rows = []
    for each in verdict.types:
        counts = [each.differences[kind] for kind in kinds]
        row = [escape(each.name), *(f"{n:,}" for n in (each.expected, each.answered, each.right))]
        row += [f"<span class='bad'>{n:,}</span>" if n else "0" for n in counts]
        row += [f"{100 * each.precision:.4g} %", f"{100 * each.recall:.4g} %"]
        if verdict.paced:
            delay = each.delay_s
            row += [f"{delay[name]:.3f}" for name in ("p50", "p99", "worst")] if delay else [""] * 3
            row.append(str(each.limit_s))
        rows.append(row)
    return _table(head, rows)


def _differences(shown: Shown) -> str:
    if not shown.differences:
        return "<p class='note'>None.</p>"
    rows = [
        [escape(row["kind"]), "" if row["minute"] is None else str(row["minute"]),
         escape(row["sentence"] or "")]
        for row in shown.differences
    ]  # fmt: skip
    everything = shown.verdict.differences_file
    note = f"<p class='note'>The first {len(rows)}; all are in {everything}.</p>"
    return note + _table(["kind", "minute", "in words"], rows, "words")


def write_report(directory: Path, shown: Shown) -> Path:
    """Write `report.html` beside the answers."""
    verdict = shown.verdict
    figures = [_shares(verdict), _counts(verdict)]
    if verdict.paced:
        figures += [_delay(verdict), _distribution(verdict)]
    figures += [_rate(verdict), *_resources(directory)]
    legend = {"orientation": "h", "yanchor": "top", "y": -0.2, "xanchor": "left", "x": 0}
    pictures = []
    for i, figure in enumerate(figures):
        # A heading of the page, since a picture's own does not wrap on a phone.
        pictures.append(f"<h2>{escape(figure.layout.title.text)}</h2>")
        figure.update_layout(
            height=340, template="plotly_white", legend=legend, title=None,
            margin={"t": 15, "b": 45, "l": 55, "r": 15},
        )  # fmt: skip
        config = {"responsive": True, "displaylogo": False, "displayModeBar": False}
        pictures.append(
            pio.to_html(figure, full_html=False, include_plotlyjs=(i == 0), config=config)
        )
    note = f"{verdict.rows:,} rows of input, {verdict.last_second // 60 + 1} minutes"
    if verdict.bad_rows:
        note += f", {verdict.bad_rows:,} bad rows left out"
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Linear Road: validation</title><style>{STYLE}</style>"
        "<h1>Linear Road: validation</h1>"
        f"<p class='verdict {'passed' if verdict.passed else 'failed'}'>{escape(verdict.line())}"
        f"</p><p class='note'>{note}; checked in {verdict.seconds:.0f} s.</p>"
        f"{_types(verdict)}{''.join(pictures)}<h2>Differences</h2>{_differences(shown)}</html>"
    )
    path = directory / "report.html"
    with whole(path) as temporary:
        temporary.write_text(page)
    return path
