"""The pictures of `describe`: one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio

from linearroad.describe._kernels import CELL_FT, CELL_S
from linearroad.describe.measure import Figures
from linearroad.files import whole

__all__ = ["PAPER", "rows_beside_paper", "write_page"]

NOT_GIVEN = "not given"
# Three hours of one expressway as the paper of 2004 reports them: sections 4.3.1 and, for vehicles,
# 3.2.3. Travel-time requests follow from section 3.1.1: 40 % of the requests that 1 % of the
# position reports bring along.
PAPER = {
    "position reports": "roughly 12,000,000",
    "vehicles": "approximately 150,000",
    "reports/s, first minute": NOT_GIVEN,
    "reports/s, last minute": NOT_GIVEN,
    "toll notifications": "roughly 2,000,000",
    "tolls above zero": NOT_GIVEN,
    "accident alerts": "28,000",
    "balance requests": "60,000",
    "expenditure requests": "12,000",
    "travel-time requests": "48,000 by its shares",
}
CELL_MILES = CELL_FT / 5280
ZOOM_BEHIND_MILES, ZOOM_AHEAD_MILES = 12.0, 3.0
SLOW_MPH = 25.0
SPEED_COLORS = "RdYlGn"


def rows_beside_paper(figures: Figures) -> list[tuple[str, str, str]]:
    """Name, what was measured, what the papers report."""
    share = figures.tolls_above_zero / max(figures.notifications, 1)
    measured = {
        "position reports": f"{figures.reports:,}",
        "vehicles": f"{figures.vehicles:,}",
        "reports/s, first minute": f"{figures.first_minute_rate:,.0f}",
        "reports/s, last minute": f"{figures.last_minute_rate:,.0f}",
        "toll notifications": f"{figures.notifications:,}",
        "tolls above zero": f"{figures.tolls_above_zero:,} ({share:.0%})",
        "accident alerts": f"{figures.alerts:,}",
        "balance requests": f"{figures.queries['balance']:,}",
        "expenditure requests": f"{figures.queries['expenditure']:,}",
        "travel-time requests": f"{figures.queries['travel time']:,}",
    }
    return [(name, measured[name], PAPER[name]) for name in PAPER]


def rate_figure(figures: Figures) -> Any:
    """Reports a second over time, as means over ten seconds."""
    width = 10
    rate = figures.rate[: len(figures.rate) // width * width].reshape(-1, width).mean(axis=1)
    minutes = (np.arange(len(rate)) + 0.5) * width / 60
    line = go.Scatter(x=minutes, y=rate, mode="lines", line={"color": "#1f4e79"})
    return go.Figure(line).update_layout(
        title="Position reports a second", xaxis_title="minute", yaxis_title="reports/s"
    )


def space_time_figure(figures: Figures, direction: int, accidents: list[dict[str, int]]) -> Any:
    """Mean speeds of the travel lanes over time and place, with the accidents drawn in."""
    speed = figures.cell_speed[direction].T
    picture = go.Heatmap(
        z=speed,
        x=np.arange(speed.shape[1]) * CELL_S / 60,
        y=np.arange(speed.shape[0]) * CELL_MILES,
        zmin=0,
        zmax=65,
        colorscale=SPEED_COLORS,
        colorbar={"title": "mph"},
    )
    figure = go.Figure(picture)
    for accident in accidents:
        figure.add_trace(
            go.Scatter(
                x=[accident["stopped"] / 60, accident["cleared"] / 60],
                y=[accident["pos"] / 5280] * 2,
                mode="lines",
                line={"color": "black", "width": 4},
                showlegend=False,
                hovertext=f"accident in lane {accident['lane']}",
            )
        )
    way = "east, upwards" if direction == 0 else "west, downwards"
    return figure.update_layout(
        title=f"Speeds in direction {direction} ({way}); black: an accident stands",
        xaxis_title="minute",
        yaxis_title="mile (segment)",
        xaxis_range=[0, figures.seconds / 60],
        yaxis_range=[0, 100],
    )


def slow_share(
    figures: Figures, accident: dict[str, int], miles: float, begin: int, end: int
) -> float:
    """How much of the stretch behind an accident is slow, from one second to another."""
    place, reach = accident["pos"] // CELL_FT, int(miles / CELL_MILES)
    behind = slice(max(place - reach, 0), place)
    if accident["dir"] == 1:
        behind = slice(place + 1, place + 1 + reach)
    cells = figures.cell_speed[accident["dir"], max(begin, 0) // CELL_S : max(end, 0) // CELL_S]
    cells = cells[:, behind]
    return float((cells < SLOW_MPH).mean()) if cells.size else 1.0


def clarity(figures: Figures, accident: dict[str, int]) -> float:
    """How clearly an accident's queue grows, and has dissolved half an hour after the clearing."""
    stopped, cleared = accident["stopped"], accident["cleared"]
    before = slow_share(figures, accident, 4.0, stopped - 600, stopped)
    standing = slow_share(figures, accident, 4.0, stopped + 300, cleared)
    after = slow_share(figures, accident, ZOOM_BEHIND_MILES, cleared + 1500, cleared + 2100)
    return standing - before - after


def zoom(figure: Any, accident: dict[str, int]) -> Any:
    """The stretch behind one accident, from before it until its queue has dissolved."""
    mile = accident["pos"] / 5280
    behind, ahead = ZOOM_BEHIND_MILES, ZOOM_AHEAD_MILES
    low, high = (mile - behind, mile + ahead) if accident["dir"] == 0 else (
        mile - ahead, mile + behind
    )  # fmt: skip
    return go.Figure(figure).update_layout(
        title=f"The queue behind the accident at mile {mile:.1f}, lane {accident['lane']}",
        xaxis_range=[accident["stopped"] / 60 - 8, accident["cleared"] / 60 + 35],
        yaxis_range=[max(low, 0), min(high, 100)],
    )


def write_page(path: Path, figures: Figures, accidents: list[dict[str, int]]) -> None:
    """Write the page; the direction shown is that of the accident with the clearest queue."""
    seen = [accident for accident in accidents if accident["stopped"] < figures.seconds]
    clearest = max(seen, key=lambda accident: clarity(figures, accident), default=None)
    direction = clearest["dir"] if clearest else 0
    here = [accident for accident in seen if accident["dir"] == direction]
    diagram = space_time_figure(figures, direction, here)
    pictures = [rate_figure(figures), diagram]
    if clearest:
        pictures.append(zoom(diagram, clearest))
    for picture, height in zip(pictures, (360, 720, 560), strict=False):
        picture.update_layout(height=height, template="plotly_white", margin={"t": 50, "b": 45})
    table = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows_beside_paper(figures)
    )
    parts = [
        pio.to_html(picture, full_html=False, include_plotlyjs=(i == 0))
        for i, picture in enumerate(pictures)
    ]
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Linear Road traffic</title>"
        "<style>body{font:15px sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}"
        "td{padding:.2em 1.2em .2em 0}td:nth-child(n+2){text-align:right}</style>"
        f"<h1>Linear Road traffic, expressway {figures.xway}</h1>"
        f"<table><tr><th></th><th>here ({figures.seconds // 60} min)</th>"
        f"<th>papers (180 min)</th></tr>{table}</table>{''.join(parts)}</html>"
    )
    with whole(path) as temporary:
        temporary.write_text(page)
