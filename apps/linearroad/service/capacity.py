"""Tables that have room for many expressways from the start.

Tables grow by copying, which takes seconds for the tens of millions of vehicles that are on a
thousand expressways. A service that knows how many will be driven has room for them before the
first row arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import xstream as xs
from linearroad.operators.vehicles import STATE
from linearroad.run.engine import Engine
from linearroad.tables.speeds import SUM
from xstream.kernels.hashtable import EMPTY

__all__ = ["RoomyState"]

#: Entries of an expressway at rush hour, with about 52,000 vehicles: the reports of 31 seconds, and
#: the speeds of vehicles that came in this minute.
REPORTS, SPEEDS = 60_000, 100_000


class RoomyState(Mapping[xs.Stream, xs.KernelState]):
    """The initial states of the kernels that have a table by vehicle, made on access."""

    def __init__(self, engine: Engine, expressways: int) -> None:
        self._kernels = [part.kept["vehicles"] for parts in engine.parts for part in parts]
        self._expressways = expressways

    def __getitem__(self, stream: xs.Stream) -> xs.KernelState:
        if stream not in self._kernels:
            raise KeyError(stream)
        reports = np.zeros(REPORTS * self._expressways, np.int32)
        return {
            **STATE,
            "vid": reports,
            "where": reports,
            "bits": reports,
            "slot": reports,
            "sum": np.full(SPEEDS * self._expressways, np.array((EMPTY, 0), SUM)),
        }

    def __iter__(self) -> Iterator[xs.Stream]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)
