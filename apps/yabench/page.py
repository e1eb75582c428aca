"""The report: one self-contained page with all tests of a benchmark, engines side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import mean, median
from typing import Any

from xstream.bench.report import machine
from xstream.report.page import document, plots_html, section, table_html, write
from xstream.report.plots import COLORS, boxes, graph_objects, layout
from yabench.published import Reference, read_published

__all__ = ["write_page"]

Found = dict[str, Any]
#: Findings about an engine that are shown at once: runs of a wrong engine differ in details.
MOST_SENTENCES = 3
_BOXES = (("Precision", "precision"), ("Recall", "recall"), ("Delay in ms", "delay_ms"))


def write_page(path: Path, title: str, found: Sequence[Found], published: Path | None) -> None:
    """Write the page of a benchmark."""
    references = read_published(published) if published else {}
    tests: dict[str, list[Found]] = {}
    for each in found:
        tests.setdefault(each["test"], []).append(each)
    buttons = "".join(
        f'<button data-test="{escape(name)}" aria-selected="false">{escape(name)}</button>'
        for name in tests
    )
    parts = [f'<div class="tabs">{buttons}</div>']
    plot = 0
    for name, outcomes in tests.items():
        figures = _figures(outcomes, references.get(outcomes[0]["published"], []))
        body = section(
            outcomes[0]["title"] or name,
            _about(outcomes[0]),
            _overview(outcomes, references.get(outcomes[0]["published"], [])),
            _findings(outcomes),
            plots_html(figures, plot),
        )
        plot += len(figures)
        parts.append(f'<section class="test" data-test="{escape(name)}">{body}</section>')
    text = document(f"YABench: {title}", parts, machine())
    write(path, text)


def _about(found: Found) -> str:
    stations = found["stations"]
    text = f"{stations:,} station{'s' if stations != 1 else ''}, {found['items']:,} items"
    judged = found.get("judged", {}).get("strict")
    if judged:
        text += (
            f"; windows of {judged['size_ms']} ms every {judged['slide_ms']} ms, reported by the "
            f"policy {judged['policy']}"
        )
    return f'<p class="sub">{escape(text)}.</p>'


def _by_engine(outcomes: Iterable[Found]) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = {}
    for each in outcomes:
        found.setdefault(each["engine"], []).append(each)
    return found


def _windows(runs: Iterable[Found], mode: str = "strict") -> list[Found]:
    return [
        window for run in runs for window in run.get("judged", {}).get(mode, {}).get("windows", [])
    ]


def _overview(outcomes: Sequence[Found], references: Sequence[Reference]) -> str:
    """Return the table of engines: one row each, then the published ones."""
    rows: list[tuple[str, ...]] = []
    for engine, runs in _by_engine(outcomes).items():
        if not _windows(runs):
            rows.append((engine, "0", "missing", *["-"] * 6))
            continue
        rows.append(_row(engine, runs, "strict"))
        if _windows(runs, "gracious"):
            rows.append(_row(f"{engine}, gracious", runs, "gracious"))
    for each in references:
        rows.append((
            f"{each.engine} (published, means)", "-", "-",
            f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.delay_ms:.0f}", "-", "-", "-",
        ))  # fmt: skip
    columns = (
        "engine", "runs", "verdict", "precision", "recall", "delay, median ms",
        "delay, largest ms", "memory, largest MB", "CPU, mean %",
    )  # fmt: skip
    return table_html(columns, rows)


def _row(name: str, runs: Sequence[Found], mode: str) -> tuple[str, ...]:
    windows = _windows(runs, mode)
    delays = [w["delay_ms"] for w in windows if w["delay_ms"] is not None]
    samples = [sample for run in runs for sample in run["samples"]]
    right = all(run["judged"][mode]["right"] for run in runs if mode in run["judged"])
    return (
        name, str(len(runs)), "right" if right else "wrong",
        f"{mean(w['precision'] for w in windows):.3f}",
        f"{mean(w['recall'] for w in windows):.3f}",
        f"{median(delays):.0f}" if delays else "-", f"{max(delays):.0f}" if delays else "-",
        f"{max(s['rss_mb'] for s in samples):.0f}" if samples else "-",
        f"{mean(s['cpu_percent'] for s in samples):.0f}" if samples else "-",
    )  # fmt: skip


def _findings(outcomes: Sequence[Found]) -> str:
    """Say what is wrong with each engine, with the first bindings that differ."""
    parts = []
    for engine, runs in _by_engine(outcomes).items():
        parts.append(f"<h3>{escape(engine)}</h3>")
        told = [
            f'<p class="finding">{escape(text)}</p>' for text in dict.fromkeys(_sentences(runs))
        ]
        parts += told[:MOST_SENTENCES]
        if more := told[MOST_SENTENCES:]:
            summary = f"<summary>{len(more)} more findings of other runs</summary>"
            parts.append(f"<details>{summary}{''.join(more)}</details>")
        wrong = [w for w in _windows(runs) if w["missing"] or w["unexpected"]][:5]
        if wrong:
            rows = [
                (f"{w['start']}-{w['end']} ms", " | ".join(w["missing"]),
                 " | ".join(w["unexpected"]))
                for w in wrong
            ]  # fmt: skip
            table = table_html(("window", "missing", "unexpected"), rows)
            parts.append(f"<details><summary>First differences</summary>{table}</details>")
    return "".join(parts)


def _sentences(runs: Iterable[Found]) -> Iterable[str]:
    for run in runs:
        if run["failure"]:
            yield run["failure"]
        for mode, judged in run.get("judged", {}).items():
            yield f"{mode.capitalize()}: {judged['finding']}"


def _figures(outcomes: Sequence[Found], references: Sequence[Reference]) -> list[Any]:
    engines = {name: runs for name, runs in _by_engine(outcomes).items() if _windows(runs)}
    if not engines:
        return []
    colors = {name: COLORS[place % len(COLORS)] for place, name in enumerate(engines)}
    over_time = [
        _over_windows(engines, colors, "Precision", "precision", references),
        _over_windows(engines, colors, "Recall", "recall", references),
        _over_windows(engines, colors, "Delay of results in ms", "delay_ms", references),
        _sizes(engines, colors),
        _samples(engines, colors, "CPU in %", "cpu_percent"),
        _samples(engines, colors, "Memory in MB", "rss_mb"),
        _samples(engines, colors, "Threads", "threads"),
    ]
    spread = [
        _boxes(engines, f"{title} of all windows and runs", key)
        for title, key in (
            ("Precision", "precision"),
            ("Recall", "recall"),
            ("Delay in ms", "delay_ms"),
        )
    ]
    return [*over_time, *spread]


def _over_windows(
    engines: Mapping[str, list[Found]],
    colors: Mapping[str, str],
    title: str,
    key: str,
    references: Sequence[Reference],
) -> Any:
    """Draw a value of each window, as the mean of all runs, with every other window shaded."""
    go = graph_objects()
    figure = go.Figure()
    for name, runs in engines.items():
        strict, gracious = (_means(runs, mode, key) for mode in ("strict", "gracious"))
        figure.add_scatter(
            x=list(strict), y=list(strict.values()), name=name, mode="lines+markers",
            line_color=colors[name],
        )  # fmt: skip
        if gracious not in ({}, strict) and key != "delay_ms":
            figure.add_scatter(
                x=list(gracious), y=list(gracious.values()), name=f"{name}, gracious",
                mode="lines+markers", line={"color": colors[name], "dash": "dash"},
            )  # fmt: skip
    for place, each in enumerate(references):
        # Labels alternate between the sides, so that those of near lines do not overlap.
        figure.add_hline(
            getattr(each, key), line_dash="dot", line_color="#8894a0",
            annotation_text=f"{each.engine} (published)", annotation_font_size=10,
            annotation_position=("top right", "top left", "bottom right", "bottom left")[place % 4],
        )  # fmt: skip
    windows = _windows(next(iter(engines.values()))[:1])
    for window in windows[::2]:
        start = window["end"] - (windows[0]["end"])
        figure.add_vrect(start / 1000, window["end"] / 1000, fillcolor="#8894a0", opacity=0.12,
                         line_width=0)  # fmt: skip
    if key != "delay_ms":
        figure.update_yaxes(range=[-0.05, 1.05])
    return layout(figure, title, "end of the window in s", title, showlegend=True)


def _means(runs: Iterable[Found], mode: str, key: str) -> dict[float, float]:
    """Return the mean of a value over all runs, by the end of the window in seconds."""
    values: dict[float, list[float]] = {}
    for window in _windows(runs, mode):
        if window[key] is not None:
            values.setdefault(window["end"] / 1000, []).append(window[key])
    return {end: mean(each) for end, each in values.items()}


def _sizes(engines: Mapping[str, list[Found]], colors: Mapping[str, str]) -> Any:
    go = graph_objects()
    figure = go.Figure()
    for name, runs in engines.items():
        windows = _windows(runs[:1])
        ends = [window["end"] / 1000 for window in windows]
        figure.add_scatter(x=ends, y=[w["actual"] for w in windows], name=name,
                           mode="lines+markers", line_color=colors[name])  # fmt: skip
    windows = _windows(next(iter(engines.values()))[:1])
    ends = [window["end"] / 1000 for window in windows]
    figure.add_scatter(x=ends, y=[w["expected"] for w in windows], name="expected", mode="lines",
                       line={"dash": "dash", "color": "#8894a0"})  # fmt: skip
    title = "Expected and actual result sizes"
    return layout(figure, title, "end of the window in s", "bindings", showlegend=True)


def _samples(
    engines: Mapping[str, list[Found]], colors: Mapping[str, str], title: str, key: str
) -> Any:
    go = graph_objects()
    figure = go.Figure()
    for name, runs in engines.items():
        samples = runs[0]["samples"]
        mode = "lines" if len(samples) > 1 else "markers"  # a point has no line
        figure.add_scatter(x=[s["time_ms"] / 1000 for s in samples], y=[s[key] for s in samples],
                           name=name, mode=mode, line_color=colors[name])  # fmt: skip
    return layout(figure, title, "time in s", title, showlegend=True)


def _boxes(engines: Mapping[str, list[Found]], title: str, key: str) -> Any:
    values = {
        name: [window[key] for window in _windows(runs) if window[key] is not None]
        for name, runs in engines.items()
    }
    return boxes(title, "engine", title, values)
