"""The page of `describe`: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from linearroad.description._kernels import CELL_FT, CELL_S
from linearroad.description.figures import Figures
from xstream.bench.report import machine
from xstream.report import plots
from xstream.report.heat import heat_map
from xstream.report.page import document, paragraphs, plots_html, section, table_html, write

__all__ = ["PAPER", "further_rows", "rows_beside_paper", "summary_line", "write_page"]

Accident = dict[str, int]

NOT_GIVEN = "not given"
# Three hours of one expressway as the paper of 2004 reports them (the paper's section 4.3.1; for
# vehicles, the paper's section 3.2.3). Travel-time requests follow from the paper's section 3.1.1:
# 1 % of the position reports come with a request, and 40 % of those ask for a travel time.
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
LANES = ("entry ramp", "lane 1", "lane 2", "lane 3", "exit ramp")
DIRECTIONS = ("east, upwards in the picture", "west, downwards in the picture")
#: If less of the road behind an accident is slow, there is no queue to show.
LEAST_SLOW = 0.1


def rows_beside_paper(figures: Figures) -> list[tuple[str, str, str]]:
    """Name, measured value and value reported by the papers."""
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


def further_rows(figures: Figures) -> list[tuple[str, str]]:
    """Name and value of figures that the papers do not report."""
    return [
        ("on the road at the end", f"{figures.on_road_at_end:,} vehicles"),
        ("busiest segment", f"{figures.busiest_segment_vehicles:,} vehicles/min"),
        *(
            (f"mean speed, {lane}", f"{mph:.1f} mph")
            for lane, mph in zip(LANES, figures.lane_speeds_mph, strict=True)
        ),
    ]


def summary_line(figures: Figures) -> str:
    """The expressway and the minutes that were measured."""
    minutes = figures.seconds // 60
    line = f"expressway {figures.xway}, {minutes:,} minutes of traffic"
    if figures.from_minute:
        line += f"; minute 0 is minute {figures.from_minute:,} of the simulation"
    return line


def rate_figure(figures: Figures) -> Any:
    """Reports per second over time, as means over ten seconds."""
    width = 10
    rate = figures.rate[: len(figures.rate) // width * width].reshape(-1, width).mean(axis=1)
    minutes = (np.arange(len(rate)) + 0.5) * width / 60
    points = [(x, y, 0.0) for x, y in zip(minutes.tolist(), rate.tolist(), strict=True)]
    return plots.lines(
        "Position reports per second", "minute of the stream", "reports/s", {"reports": points}
    )


def space_time_figure(figures: Figures, direction: int, accidents: Sequence[Accident]) -> Any:
    """Mean speeds of the travel lanes over time and place, with the accidents drawn in."""
    # The last cell begins where the stream ends.
    speed = figures.cell_speed[direction, : figures.seconds // CELL_S].T
    title = f"Speeds in direction {direction} ({DIRECTIONS[direction]})"
    size = speed.shape[1] * CELL_S / 60, speed.shape[0] * CELL_MILES
    figure = heat_map(title, "minute of the stream", "mile (segment)", speed, size, (0, 65), "mph")
    for accident in accidents:
        if accident["dir"] == direction:
            figure.add_trace(
                go.Scatter(
                    x=[accident["stopped"] / 60, accident["cleared"] / 60],
                    y=[accident["pos"] / 5280] * 2,
                    mode="lines",
                    line={"color": plots.INK, "width": 4},
                    hovertext=f"accident in lane {accident['lane']}",
                    showlegend=False,
                )
            )
    return figure.update_layout(
        xaxis_range=[0, figures.seconds / 60], yaxis_range=[0, 100], height=620
    )


def seen(accidents: Sequence[Accident], seconds: int) -> list[Accident]:
    """The accidents that stand during the stream, cut to its seconds.

    Accidents are recorded from the beginning of the simulation, which may be before that of the
    stream. One that was never cleared stands to the end.
    """
    found = []
    for accident in accidents:
        stopped, cleared = accident["stopped"], accident["cleared"]
        end = min(cleared, seconds) if cleared >= stopped else seconds
        if max(stopped, 0) < end:
            found.append({**accident, "stopped": max(stopped, 0), "cleared": end})
    return found


def slow_share(
    figures: Figures, accident: Accident, miles: float, begin: int, end: int
) -> float | None:
    """The share of the road behind an accident that is slow; None without data in the stream."""
    place, reach = accident["pos"] // CELL_FT, int(miles / CELL_MILES)
    behind = slice(max(place - reach, 0), place)
    if accident["dir"] == 1:
        behind = slice(place + 1, place + 1 + reach)
    cells = figures.cell_speed[accident["dir"], max(begin, 0) // CELL_S : max(end, 0) // CELL_S]
    cells = cells[:, behind]
    return float((cells < SLOW_MPH).mean()) if cells.size else None


def clarity(figures: Figures, accident: Accident) -> float:
    """How clearly a queue grows at an accident and dissolves within half an hour of clearing."""
    stopped, cleared = accident["stopped"], accident["cleared"]
    before = slow_share(figures, accident, 4.0, stopped - 600, stopped)
    standing = slow_share(figures, accident, 4.0, stopped + 300, cleared)
    after = slow_share(figures, accident, ZOOM_BEHIND_MILES, cleared + 1500, cleared + 2100)
    unknown = 0.5  # the stream begins later or ends earlier
    return (
        (standing or 0.0)
        - (unknown if before is None else before)
        - (unknown if after is None else after)
    )


def clearest(figures: Figures, accidents: Sequence[Accident]) -> Accident | None:
    """The accident with the most visible queue; None if there is no visible queue."""
    queued = []
    for accident in accidents:
        begin, end = accident["stopped"] + 300, accident["cleared"]
        if (slow_share(figures, accident, 4.0, begin, end) or 0.0) >= LEAST_SLOW:
            queued.append(accident)
    return max(queued, key=lambda accident: clarity(figures, accident), default=None)


def zoom(figures: Figures, accident: Accident, accidents: Sequence[Accident]) -> Any:
    """A plot of the road behind one accident, until its queue has dissolved."""
    mile = accident["pos"] / 5280
    behind, ahead = ZOOM_BEHIND_MILES, ZOOM_AHEAD_MILES
    low, high = (mile - behind, mile + ahead) if accident["dir"] == 0 else (
        mile - ahead, mile + behind
    )  # fmt: skip
    begin, end = accident["stopped"] / 60 - 8, accident["cleared"] / 60 + 35
    return space_time_figure(figures, accident["dir"], accidents).update_layout(
        title=f"The queue behind the accident at mile {mile:.1f}, direction {accident['dir']}, "
        f"lane {accident['lane']}",
        xaxis_range=[max(begin, 0), min(end, figures.seconds / 60)],
        yaxis_range=[max(low, 0), min(high, 100)],
        height=480,
    )


def pictures(figures: Figures, accidents: Sequence[Accident]) -> Iterator[Any]:
    """Plots of the rate, of both directions, and of the most visible queue."""
    yield rate_figure(figures)
    visible = seen(accidents, figures.seconds)
    for direction in range(len(DIRECTIONS)):
        yield space_time_figure(figures, direction, visible)
    best = clearest(figures, visible)
    if best is not None:
        yield zoom(figures, best, visible)


def write_page(path: Path, figures: Figures, accidents: Sequence[Accident]) -> None:
    """Write the page."""
    head = ("", f"here ({figures.seconds // 60} min)", "papers (180 min)")
    words = (
        "Speeds are means over the travel lanes, a quarter of a mile and half a minute; empty: no "
        "vehicle. A thick line is an accident, from the stop of its vehicles to its clearing."
    )
    body = [
        table_html(head, rows_beside_paper(figures)),
        table_html(("", ""), further_rows(figures)),
        section("The traffic over time and place", paragraphs(words)),
        plots_html(pictures(figures, accidents)),
    ]
    title, line = f"Linear Road traffic, expressway {figures.xway}", summary_line(figures)
    write(path, document(title, body, machine(), line[0].upper() + line[1:] + "."))
