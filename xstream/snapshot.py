"""`Snapshot`: what a run has counted at one moment, and the rates between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xstream.sigseg import MemoryStats
from xstream.statistics import Delays

__all__ = ["COLUMNS", "Edge", "OperatorRates", "Rates", "Snapshot"]

#: The counters of an operator: columns of `Snapshot.counters`, all of which only grow.
COLUMNS = ("tuples", "samples", "emitted", "busy_ns", "dropped", "queue_peak")
TUPLES, SAMPLES, EMITTED, BUSY, DROPPED, PEAK = range(len(COLUMNS))
#: Waiting tuples at which the pressure of an edge with a queue is 1.
FULL_QUEUE = 4096


class Edge(NamedTuple):
    """A stream from an operator to a port of another one, by their numbers."""

    origin: int
    target: int
    port: int


class OperatorRates(NamedTuple):
    """What an operator did between two snapshots; see `Rates`.

    >>> OperatorRates(0.25, 100.0, 6400.0, 50.0, 0.0, 3).samples_per_s
    6400.0
    """

    busy: float
    tuples_per_s: float
    samples_per_s: float
    emitted_per_s: float
    dropped_per_s: float
    waiting: int


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The counters of a run at one moment.

    `counters` has a row per operator, in the order of `names`, and a column per name in
    `Snapshot.COLUMNS`; `snapshot["name"]` is a row as a dictionary. `waiting` has the tuples in
    the queue of each edge, `rings` how full the ring from each thread to the next is (0 to 1), and
    `parts` the thread of each operator. `lateness` and `latency` are those of sources whose tuples
    have arrival times, `network` the counters of sources and sinks on the network.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.array(np.ones(64), window=4), name="ones").count(name="sink")
    >>> seen = []
    >>> run = q.run(progress=lambda run: seen.append(run.snapshot()))
    >>> last = run.snapshot()
    >>> last.phase, last["ones"]["samples"], last["sink"]["tuples"]
    ('done', 64, 16)
    """

    wall_s: float
    phase: str
    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    counters: NDArray[np.int64]
    waiting: NDArray[np.int64]
    rings: tuple[float, ...]
    parts: tuple[int, ...]
    memory: MemoryStats
    queue_bytes: int
    lateness: Mapping[str, Delays]
    latency: Mapping[str, Delays]
    network: Mapping[str, Mapping[str, int]]

    COLUMNS = COLUMNS

    def __getitem__(self, name: str) -> dict[str, int]:
        """The counters of an operator."""
        if name not in self.names:
            raise KeyError(name)
        row = self.counters[self.names.index(name)].tolist()
        return dict(zip(COLUMNS, row, strict=True))

    def since(self, earlier: Snapshot) -> Rates:
        """What happened after an earlier snapshot of the same run, per second.

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> source = q.source(xs.io.array(np.ones(64), window=4, repeat=50_000), name="ones")
        >>> out = source.count()
        >>> seen = []
        >>> run = q.run(progress=lambda run: seen.append(run.snapshot()))
        >>> rates = run.snapshot().since(seen[0])
        >>> 0 <= rates["ones"].busy <= 1
        True
        """
        return Rates(self, earlier)


class Rates:
    """The rates between two snapshots: `rates["name"]`, and arrays with a value per operator.

    `busy` is the share of the time that an operator itself took, from 0 to 1. `pressure` has a
    value from 0 to 1 for each edge: how busy the operator is that the stream leads to, how full
    its queue is (1 at 4,096 tuples, on a logarithmic scale), or how full the ring to its thread is,
    whichever is most. At 1 the operator holds up those before it.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.array(np.ones(64), window=4), name="ones").count()
    >>> run = q.run()
    >>> rates = run.snapshot().since(run.snapshot())
    >>> rates.tuples_per_s.tolist(), rates["ones"].waiting
    ([0.0, 0.0], 0)
    """

    def __init__(self, last: Snapshot, first: Snapshot) -> None:
        self.names = last.names
        self.seconds = max(last.wall_s - first.wall_s, 1e-9)
        moved = np.maximum(last.counters - first.counters, 0) / self.seconds
        self.busy = np.clip(moved[:, BUSY] / 1e9, 0.0, 1.0)
        self.tuples_per_s = moved[:, TUPLES]
        self.samples_per_s = moved[:, SAMPLES]
        self.emitted_per_s = moved[:, EMITTED]
        self.dropped_per_s = moved[:, DROPPED]
        self.waiting = np.zeros(len(last.names), np.int64)
        for edge, waiting in zip(last.edges, last.waiting.tolist(), strict=True):
            self.waiting[edge.target] += waiting
        self.pressure = _pressure(last, self.busy)

    def __getitem__(self, name: str) -> OperatorRates:
        """The rates of an operator."""
        if name not in self.names:
            raise KeyError(name)
        at = self.names.index(name)
        return OperatorRates(
            float(self.busy[at]), float(self.tuples_per_s[at]), float(self.samples_per_s[at]),
            float(self.emitted_per_s[at]), float(self.dropped_per_s[at]), int(self.waiting[at]),
        )  # fmt: skip


def _pressure(last: Snapshot, busy: NDArray[np.float64]) -> NDArray[np.float64]:
    queues = np.log2(1 + last.waiting) / np.log2(1 + FULL_QUEUE)
    found: NDArray[np.float64] = np.minimum(queues, 1.0)
    for number, edge in enumerate(last.edges):
        found[number] = max(found[number], busy[edge.target])
        first, then = last.parts[edge.origin], last.parts[edge.target]
        if first < then:  # tuples pass through all rings between the two threads
            found[number] = max(found[number], *last.rings[first:then])
    return found
