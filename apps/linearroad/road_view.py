"""Linear Road on the live page: speeds, tolls and accidents of the road, and response times."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.operators.road import SHOWN
from linearroad.run.engine import Engine
from linearroad.schema import SEGMENTS
from xstream.io.response_times import ResponseTimes

__all__ = ["RoadView", "show_road"]

DIRECTIONS = ("eastbound", "westbound")
#: Miles per hour, and a toll, at which a heat map has its last colour.
FAST, DEAR = 65.0, 1_000_000.0


class RoadView:
    """The heat maps of the first expressway: a column a minute."""

    def __init__(self) -> None:
        self._speeds = [self._map("speed", "Speed", FAST, "mi/h", way) for way in DIRECTIONS]
        self._tolls = [self._map("toll", "Tolls", DEAR, "", way) for way in DIRECTIONS]

    def _map(self, name: str, title: str, high: float, unit: str, way: str) -> xs.HeatMap:
        return xs.HeatMap(
            f"{name} {way}", f"{title}, first expressway {way}", rows=SEGMENTS, limits=(0.0, high),
            unit=unit, across="minute", up="segment",
            colors="slow-to-fast" if name == "speed" else "amount",
            log=name == "toll", marked="segments with an accident, by minute",
        )  # fmt: skip

    @property
    def panels(self) -> list[xs.HeatMap]:
        """The heat maps."""
        return [*self._speeds, *self._tolls]

    def take(self, minute: int, speed: xs.SigSeg, toll: xs.SigSeg, accident: xs.SigSeg) -> None:
        """Take the road at the start of a minute."""
        speeds, tolls, accidents = (np.asarray(each) for each in (speed, toll, accident))
        for way in range(len(DIRECTIONS)):
            here = slice(way * SHOWN // 2, (way + 1) * SHOWN // 2)
            marks = np.flatnonzero(accidents[here]).tolist()
            known = [float(value) if value > 0 else None for value in speeds[here].tolist()]
            self._speeds[way].add(minute, known, marks)
            self._tolls[way].add(minute, map(float, tolls[here].tolist()), marks)


def show_road(live: xs.Live, engine: Engine, delays: ResponseTimes | None = None) -> None:
    """Add the road and the response times to the live view of a query that is not run yet.

    Runs with checkpoints have no operator for the road, so that they can go on with or without a
    live view.
    """
    live.panels.clear()
    if delays is not None:
        live.panels.append(
            xs.Limits(
                "response times", "Response times and their limits", delays.by_kind,
                empty="Runs at full speed have no response times (--speed).",
            )
        )  # fmt: skip
    if engine.checkpoints is None:
        view = RoadView()
        live.panels += view.panels
        shown = engine.network.rules.road(engine.parts[0][0].second, " 0")
        shown.sink(view.take, name="road view")
    engine.live = live
