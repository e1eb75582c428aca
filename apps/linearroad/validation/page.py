"""The page of `validate --report`: one self-contained HTML file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from linearroad.validation.answers import TYPES
from linearroad.validation.delays import BINS_PER_DECADE
from linearroad.validation.job import Shown
from linearroad.validation.verdict import KINDS, Verdict
from xstream.bench.report import machine
from xstream.report import plots
from xstream.report.page import document, origin_html, plots_html, section, write

__all__ = ["write_report"]

COLORS = plots.COLORS
MINUTE = "minute of the stream"
RATE_S = 10  # the input rate is a mean over this many seconds


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
    """Precision, and recall dotted beside it."""
    figure = go.Figure(_lines(verdict, lambda row: 100 * row["precision"]))
    for trace in _lines(verdict, lambda row: 100 * row["recall"], dash="dot"):
        figure.add_trace(trace.update(name=f"{trace.name}, recall", showlegend=False))
    lowest = min(
        (100 * min(row["precision"], row["recall"]) for row in verdict.minutes), default=100
    )
    return plots.layout(
        figure, "Precision (solid) and recall (dotted)", MINUTE, "share of answers, %",
        yaxis_range=[min(lowest, 99) - 1, 100.5],
    )  # fmt: skip


def _counts(verdict: Verdict) -> Any:
    """Answers, and expected ones dotted; logarithmic, as kinds differ by a factor of 1,000."""
    figure = go.Figure(_lines(verdict, lambda row: row["answered"] or None))
    for trace in _lines(verdict, lambda row: row["expected"] or None, dash="dot"):
        figure.add_trace(trace.update(name=f"{trace.name}, expected", showlegend=False))
    title = "Answers (solid) and expected answers (dotted) per minute"
    return plots.layout(figure, title, MINUTE, "answers per minute", yaxis_type="log",
                        yaxis_dtick=1)  # fmt: skip


def _delay(verdict: Verdict) -> Any:
    """The 99th percentile, and the worst answer of each minute."""
    figure = go.Figure(
        _lines(verdict, lambda row: row["delay_s"]["p99"] if row.get("delay_s") else None)
    )
    worst = _lines(verdict, lambda row: row["delay_s"]["worst"] if row.get("delay_s") else None)
    for trace in worst:
        trace.update(name=f"{trace.name}, worst", mode="markers", showlegend=False)
        figure.add_trace(trace.update(marker={"symbol": "line-ew-open", "size": 8}))
    title = "Delay: 99th percentile (lines) and worst (dashes)"
    return plots.layout(figure, title, MINUTE, "delay, stream s", yaxis_rangemode="tozero")


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
    return plots.layout(
        figure, "Distribution of delays", "delay, stream s", "share of the type's answers, %",
        xaxis_type="log", xaxis_dtick=1,
    )  # fmt: skip


def _one_line(title: str, unit: str, points: list[tuple[float, float]]) -> Any:
    """One line over the minutes of the stream; empty without points."""
    series = {title: [(x, y, 0.0) for x, y in points]} if points else {}
    return plots.lines(title, MINUTE, unit, series).update_traces(mode="lines")


def _rate(verdict: Verdict) -> Any:
    seconds = verdict.rows_by_second
    bins = range(verdict.last_second // RATE_S + 1) if seconds else range(0)
    rate = [sum(seconds.get(RATE_S * at + i, 0) for i in range(RATE_S)) / RATE_S for at in bins]
    points = [(RATE_S * (at + 0.5) / 60, y) for at, y in zip(bins, rate, strict=True)]
    return _one_line("Input: rows per second of the stream", "rows/s", points)


def _timeline(directory: Path) -> dict[str, list[float]]:
    """The columns of `timeline.csv`, if there is one; lines that are not numbers are left out."""
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


def _resources(directory: Path) -> Iterator[Any]:
    columns = _timeline(directory)
    minutes = [second / 60 for second in columns.get("stream_s", [])]
    shown = (
        ("memory_bytes", "Memory of the run", "memory, MiB", 2**20),
        ("lag_s", "How far the run was behind its schedule", "behind, stream s", 1),
    )
    for name, title, unit, scale in shown:
        values = [value / scale for value in columns.get(name, [])]
        yield _one_line(title, unit, list(zip(minutes, values, strict=False)))
    cpu, wall = columns.get("cpu_s", []), columns.get("wall_s", [])
    steps = [
        (minutes[i], 100 * (cpu[i] - cpu[i - 1]) / (wall[i] - wall[i - 1]))
        for i in range(1, min(len(cpu), len(wall), len(minutes))) if wall[i] > wall[i - 1]
    ]  # fmt: skip
    yield _one_line("Processor of the run", "processor time, % of one core", steps)


def _table(head: list[str], rows: list[list[str]], kind: str) -> str:
    """A table of cells that are HTML already."""
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll {kind}"><table><tr>{cells}</tr>{body}</table></div>'


def _types(verdict: Verdict) -> str:
    kinds = [kind for kind in KINDS if kind in KINDS[:4] or verdict.count(kind)]
    head = ["answers", "expected", "answered", "right", *kinds, "precision", "recall"]
    if verdict.paced:
        head += ["p50, s", "p99, s", "worst, s", "limit, s"]
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
    return _table(head, rows, "counts")


def _differences(shown: Shown) -> str:
    """The differences in words; nothing where there is none."""
    if not shown.differences:
        return ""
    rows = [
        [escape(row["kind"]), "" if row["minute"] is None else str(row["minute"]),
         escape(row["sentence"] or "")]
        for row in shown.differences
    ]  # fmt: skip
    found, file = shown.verdict.count(*KINDS), shown.verdict.differences_file
    told = f"{file} has them all, too."
    if found > len(rows):
        told = f"The first {len(rows):,} of {found:,} differences; {file} has them all."
    note = f'<p class="sub">{escape(told)}</p>'
    table = _table(["kind", "minute", "in words"], rows, "words differences")
    return section("Differences", note, table)


def _run_origin(directory: Path) -> str:
    """How the answers were produced, if the run's summary says so."""
    try:
        summary = json.loads((directory / "summary.json").read_text())
        known = {**summary["machine"], "xstream": summary["version"]}
        known["processor"] = known["cpu"]
        return origin_html(known, "The answers were made")
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # answers of another system, or of an older version


def write_report(
    directory: Path,
    shown: Shown,
    title: str = "Linear Road: validation",
    before: Sequence[str] = (),
) -> Path:
    """Write `report.html` beside the answers, with any parts before the checks."""
    verdict = shown.verdict
    figures = [_shares(verdict), _counts(verdict)]
    if verdict.paced:
        figures += [_delay(verdict), _distribution(verdict)]
    figures += [_rate(verdict), *_resources(directory)]
    note = f"{verdict.rows:,} rows of input, {verdict.last_second // 60 + 1} minutes"
    if verdict.bad_rows:
        note += f", {verdict.bad_rows:,} bad rows left out"
    kind = "passed" if verdict.passed else "failed"
    told = f'<p class="verdict {kind}">{escape(verdict.line())}</p>'
    drawn = plots_html(figures, "".join(before).count('class="plot"'))
    body = [
        *before, section("The checks", told) if before else told, _run_origin(directory),
        _differences(shown), section("Answers by type", _types(verdict)),
        section("Over the stream", drawn) if drawn else "",
    ]  # fmt: skip
    note += f"; checked in {verdict.seconds:.0f} s."
    path = directory / "report.html"
    write(path, document(title, body, machine(), note))
    return path
