"""What the demo's page begins with: the road over time and place, and one vehicle on it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from linearroad.description.figures import Figures
from linearroad.description.page import DIRECTIONS, Accident, seen, space_time_figure
from linearroad.description.story import Story
from linearroad.schema import ALERT, BALANCE, TOLL
from xstream.report import plots
from xstream.report.page import paragraphs, plots_html, section, table_html

__all__ = ["road_parts"]

#: How kinds of answers are marked on the way of the vehicle.
MARKS = ((TOLL, "toll", "circle"), (ALERT, "accident alert", "triangle-up"),
         (BALANCE, "balance", "square"))  # fmt: skip
ROAD = (
    "Each point is the mean speed on a quarter of a mile in half a minute: red is a queue, blue a "
    "free road, empty a road without vehicles. A thick line is an accident, from the stop of its "
    "vehicles to its clearing."
)
AROUND_MILES, AROUND_MINUTES = 3.0, 1.5


def road_parts(figures: Figures, accidents: Sequence[Accident], story: Story | None) -> list[str]:
    """The sections before the checks; plots are numbered from 0."""
    visible = seen(accidents, figures.seconds)
    first = story.direction if story else 0
    maps = [space_time_figure(figures, each, visible) for each in (first, 1 - first)]
    if story is not None:
        _add_way(maps[0], story, marked=False)
        maps[0].update_layout(title=f"{maps[0].layout.title.text}, with vehicle {story.vid}")
    words = f"{figures.reports:,} position reports of {figures.vehicles:,} vehicles. {ROAD}"
    parts = [section("The road", paragraphs(words), plots_html(maps))]
    if story is not None:
        parts.append(_vehicle(figures, story, visible))
    return parts


def _vehicle(figures: Figures, story: Story, accidents: Sequence[Accident]) -> str:
    balance = "not asked" if story.balance is None else f"{story.balance:,}"
    paid = sum(toll > 0 for toll in story.tolls)
    tiles = (
        (f"{len(story.reports):,}", "position reports"),
        (f"{paid:,}", f"{'toll' if paid == 1 else 'tolls'}, {sum(story.tolls):,} in all"),
        (f"{story.alerts:,}", "accident alert" if story.alerts == 1 else "accident alerts"),
        (balance, "balance, when last asked"),
    )
    shown = "".join(f"<div><b>{escape(n)}</b>{escape(what)}</div>" for n, what in tiles)
    words = (
        f"It drives {DIRECTIONS[story.direction].split(',')[0]}, reports every 30 seconds, and is "
        "told the toll of each segment as it enters it. The toll is charged when it reaches the "
        "next segment."
    )
    rows = [
        (f"{event.second // 60}:{event.second % 60:02}", f"{story.mile_at(event.second):.1f}",
         event.words)
        for event in story.events
    ]  # fmt: skip
    table = table_html(("minute", "mile", "what happens"), rows)
    return section(
        f"One vehicle: {story.vid}", f'<div class="tiles">{shown}</div>', paragraphs(words),
        plots_html([_close(figures, story, accidents)], 2),
        f'<div class="words">{table}</div>',
    )  # fmt: skip


def _close(figures: Figures, story: Story, accidents: Sequence[Accident]) -> Any:
    """The road around the vehicle, with its answers marked on its way."""
    minutes, miles = story.reports[:, 0] / 60, story.reports[:, 2] / 5280
    figure = space_time_figure(figures, story.direction, accidents)
    _add_way(figure, story, marked=True)
    return plots.with_legend_room(figure.update_layout(showlegend=True)).update_layout(
        title="Its way, and what it is told",
        height=560,
        xaxis_range=[max(minutes.min() - AROUND_MINUTES, 0),
                     min(minutes.max() + AROUND_MINUTES, figures.seconds / 60)],
        yaxis_range=[max(miles.min() - AROUND_MILES, 0), min(miles.max() + AROUND_MILES, 100)],
    )  # fmt: skip


def _add_way(figure: Any, story: Story, marked: bool) -> None:
    seconds, speeds, feet = story.reports.T
    figure.add_scatter(
        x=seconds / 60, y=feet / 5280, mode="lines+markers" if marked else "lines",
        line={"color": plots.INK, "width": 3, "dash": "dot"}, marker={"size": 4},
        name=f"vehicle {story.vid}", hovertext=[f"{speed} mph" for speed in speeds],
        showlegend=marked,
    )  # fmt: skip
    for kind, name, symbol in MARKS if marked else ():
        events = [event for event in story.events if event.kind == kind]
        if events:
            figure.add_scatter(
                x=[event.second / 60 for event in events],
                y=[story.mile_at(event.second) for event in events], mode="markers", name=name,
                hovertext=[event.words for event in events],
                marker={"symbol": symbol, "size": 10, "color": "#ffffff",
                        "line": {"color": plots.INK, "width": 2}},
            )  # fmt: skip
