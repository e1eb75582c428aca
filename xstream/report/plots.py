"""Line and bar plots with confidence intervals, in one style."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from xstream.console import require_package

__all__ = [
    "COLORS", "INK", "RED", "Series", "bars", "boxes", "graph_objects", "layout", "lines",
    "stacked_bars", "with_legend_room",
]  # fmt: skip

#: Colours that can be distinguished in print and by colour-blind readers.
#: `static/page.js` has each of them for dark pages.
COLORS = ("#1f4e79", "#c2641f", "#3a8563", "#8a5aa8", "#8f7b14", "#5b6b7b", "#b03a5b", "#1b8494")
#: The colours of limits, and of marks on a heat map.
RED, INK = "#a61c1c", "#1c2733"
#: Pixels between the top of a plot and its x axis.
HEIGHT = 300
#: x, y, and half of the 95 % confidence interval of y.
Series = Sequence[tuple[Any, float, float]]


def graph_objects() -> Any:
    """Import and return the module `plotly.graph_objects`."""
    require_package("plotly")
    import plotly.graph_objects

    return plotly.graph_objects


def layout(figure: Any, title: str, x: str, y: str, **more: Any) -> Any:
    """Set the style of a plot: titles of the axes, and room for a legend below them."""
    figure.update_layout(
        title=title, xaxis_title=x, yaxis_title=y, template="none",
        font={"family": "system-ui, sans-serif", "size": 13}, margin={"l": 60, "r": 12, "t": 12},
        legend={
            "orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0,
            "traceorder": "normal",
        },
    )  # fmt: skip
    return with_legend_room(figure).update_layout(**more)


def with_legend_room(figure: Any) -> Any:
    """Make room for a legend on a phone, where every name takes a line."""
    shown = figure.layout.showlegend or len(figure.data) > 1
    names = [trace for trace in figure.data if trace.showlegend is not False] if shown else []
    below = 60 + 16 * len(names)
    return figure.update_layout(height=HEIGHT + below, margin={"b": below})


def _whiskers(points: Series) -> dict[str, Any] | None:
    """Return error bars; those of rates and times, which cannot be negative, end at zero."""
    if not any(point[2] for point in points):
        return None
    halves = [point[2] for point in points]
    below = [min(half, y) if y >= 0 else half for _, y, half in points]
    return {
        "type": "data", "symmetric": False, "array": halves, "arrayminus": below, "thickness": 1.2
    }  # fmt: skip


def _log_ticks(series: Mapping[str, Series]) -> dict[str, Any]:
    """Return the ticks of a logarithmic y axis: 1, 2, 5, 10 and so on, written in full."""
    heights = [point[1] for points in series.values() for point in points if point[1] > 0]
    if not heights:
        return {}
    low, high = math.floor(math.log10(min(heights))), math.ceil(math.log10(max(heights)))
    digits = (1, 2, 5) if high - low <= 4 else (1,)
    # One decade more on both sides, for traces that a page adds to the plot.
    ticks = [float(f"{d}e{power}") for power in range(low - 1, high + 2) for d in digits]
    return {"yaxis_tickvals": ticks, "yaxis_ticktext": [f"{tick:,g}" for tick in ticks]}


def lines(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Series],
    log_x: bool = False,
    log_y: bool = False,
    dashed: Sequence[str] = (),
) -> Any:
    """Draw a line for each name; error bars are 95 % confidence intervals."""  # fmt: skip
    go = graph_objects()

    figure = go.Figure()
    for number, (name, points) in enumerate(series.items()):
        figure.add_trace(
            go.Scatter(
                x=[point[0] for point in points], y=[point[1] for point in points],
                error_y=_whiskers(points),
                name=name, mode="lines+markers" if len(points) < 60 else "lines",
                line={"color": COLORS[number % len(COLORS)], "width": 2,
                      "dash": "dash" if name in dashed else "solid"},
            )
        )  # fmt: skip
    axes: dict[str, Any] = {
        "xaxis_type": "log" if log_x else "linear",
        "yaxis_type": "log" if log_y else "linear",
    }
    if log_y:
        axes |= _log_ticks(series)
    else:
        axes["yaxis_rangemode"] = "tozero"
    if log_x:  # ticks at the measured values only
        measured = sorted({point[0] for points in series.values() for point in points})
        axes["xaxis_tickvals"] = measured
        axes["xaxis_ticktext"] = [f"{x:,g}" for x in measured]
    return layout(figure, title, x, y, **axes)


def bars(title: str, x: str, y: str, series: Mapping[str, Series], log_y: bool = False) -> Any:
    """Draw groups of bars: one colour for each name, one group for each x."""
    go = graph_objects()

    figure = go.Figure()
    for number, (name, points) in enumerate(series.items()):
        figure.add_trace(
            go.Bar(
                x=[point[0] for point in points], y=[point[1] for point in points], name=name,
                error_y=_whiskers(points),
                marker_color=COLORS[number % len(COLORS)],
            )
        )  # fmt: skip
    axes = {"yaxis_type": "log", **_log_ticks(series)} if log_y else {"yaxis_type": "linear"}
    return layout(figure, title, x, y, barmode="group", **axes)


def stacked_bars(
    title: str,
    x: str,
    y: str,
    names: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    percent: bool = False,
) -> Any:
    """Draw a stacked horizontal bar for each name."""  # fmt: skip
    go = graph_objects()

    figure = go.Figure()
    for number, (part, values) in enumerate(parts.items()):
        figure.add_trace(
            go.Bar(
                y=list(names), x=list(values), name=part, orientation="h",
                marker_color=COLORS[number % len(COLORS)],
            )
        )  # fmt: skip
    return layout(
        figure, title, x, y, barmode="stack",
        xaxis_tickformat=".0%" if percent else None,
        yaxis={"autorange": "reversed", "automargin": True, "title": {"text": y, "standoff": 8}},
        height=90 + 34 * len(names) + 16 * len(parts),
    )  # fmt: skip


def boxes(title: str, x: str, y: str, values: Mapping[str, Sequence[float]]) -> Any:
    """Draw the range, the quartiles and the median of the values of each name."""
    from statistics import median, quantiles

    go = graph_objects()
    figure = go.Figure()
    for number, (name, found) in enumerate(values.items()):
        if not found:
            continue
        color = COLORS[number % len(COLORS)]
        first, middle, third = quantiles(found, n=4, method="inclusive") if len(found) > 1 else (
            found[0], found[0], found[0]
        )  # fmt: skip
        for ends, width in (((min(found), max(found)), 2), ((first, third), 16)):
            figure.add_scatter(x=[name, name], y=ends, mode="lines", hoverinfo="skip",
                               line={"color": color, "width": width}, showlegend=False)  # fmt: skip
        told = (
            f"{name}<br>median {median(found):,.4g}<br>quartiles {first:,.4g} to {third:,.4g}"
            f"<br>all {min(found):,.4g} to {max(found):,.4g}"
        )
        figure.add_scatter(
            x=[name], y=[middle], mode="markers", hovertemplate=f"{told}<extra></extra>",
            marker={"color": "#ffffff", "size": 9, "line": {"color": color, "width": 2}},
            name=name, showlegend=False,
        )  # fmt: skip
    around = [-0.5, len(values) - 0.5]
    return layout(figure, title, x, y, showlegend=False, xaxis_range=around)
