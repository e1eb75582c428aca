"""Statistics of operators: what a run counts and times, read from the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from typing import Any

from xstream._native import ffi, lib
from xstream.engine.attachment import Attachment, Counting
from xstream.notebook import stats_table
from xstream.sigseg import REASONS

__all__ = [
    "Counted",
    "Delays",
    "OperatorCost",
    "OperatorStats",
    "read_cost",
    "read_delays",
    "read_stats",
]


@dataclass(frozen=True, slots=True)
class Delays:
    """How long tuples took: the median, the 99th percentile (both exact to 3 %) and the maximum."""

    count: int
    p50_ns: int
    p99_ns: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """The statistics of an operator.

    `busy_ns` is its own time without that of its successors, extrapolated from a sample of its
    tuples. A source whose tuples have arrival times has two more values: `lateness` is the time
    from arrival to admission, and `latency` the time from arrival until the sinks have all results.
    `dropped` counts rows that came too late and tuples that were shed. `counters` are those of a
    source or sink on the network by name, such as lost datagrams (docs/sources.md). The operators
    of a region, which are compiled into one function, are timed together: the first one has the
    time of all.
    """

    tuples: int
    samples: int
    emitted: int
    busy_ns: int
    queue_peak: int
    queue_peak_bytes: int
    lateness: Delays | None = None
    latency: Delays | None = None
    dropped: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def sums(self) -> tuple[int, int, int, int, int]:
        """The values that add up over the runs that checkpoints connect.

        >>> OperatorStats(2, 8, 2, 500, 1, 64).sums
        (2, 8, 2, 500, 0)
        """
        return self.tuples, self.samples, self.emitted, self.busy_ns, self.dropped

    def after(self, earlier: Sequence[int]) -> OperatorStats:
        """The same with the counters of earlier runs added.

        >>> OperatorStats(2, 8, 2, 500, 1, 64).after((40, 160, 40, 9_500, 0)).tuples
        42
        """
        tuples, samples, emitted, busy_ns, dropped = map(add, self.sums, earlier)
        return replace(
            self, tuples=tuples, samples=samples, emitted=emitted, busy_ns=busy_ns, dropped=dropped
        )

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        return stats_table({"": self}, named=False)


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """The costs that an operator caused in the memory manager, in a profiled run.

    `copied_for` are bytes by reason, as in `MemoryStats`. The cost of passing a tuple is charged
    to the operator that receives it. `manager_ns` is part of the operator's `busy_ns`.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> out = query.source(xs.io.array(np.zeros(64), window=8)).rewindow(16).count()
    >>> run = query.run(memory="copy-always", profile=True)
    >>> sum(cost.copied_for["pass"] for cost in run.costs.values()) > 0
    True
    """

    bytes_copied: int
    copied_for: dict[str, int]
    allocations: int
    reallocations: int
    moved_reallocations: int
    manager_ns: int


class Counted(int):
    """The number of tuples of a `.count()`; `samples` is the number of their samples."""

    samples: int

    def __new__(cls, tuples: int, samples: int) -> Counted:
        """Make one from both numbers."""
        counted = super().__new__(cls, tuples)
        counted.samples = samples
        return counted


def read_stats(op: Any, counted: Any | None, attachment: Attachment | None) -> OperatorStats:
    """Read the statistics of an operator; `counted` replaces its counters if it is in a region."""
    own: Mapping[str, int] = {}
    if attachment is not None and isinstance(attachment, Counting):  # a slow check of a protocol
        own = attachment.counters()
    native = counted
    if native is None:
        native = ffi.new("xs_op_stats *")
        lib.xs_op_stats_read(op, native)
    return OperatorStats(
        native.tuples, native.samples, native.emitted, native.busy_ns, native.queue_peak,
        native.queue_peak_bytes, *read_delays(op), native.dropped, own,
    )  # fmt: skip


def read_delays(op: Any) -> tuple[Delays | None, Delays | None]:
    """Read the lateness and the latency of a source; None if its tuples have no arrival times."""
    lateness, latency = ffi.new("xs_delay_stats *"), ffi.new("xs_delay_stats *")
    lib.xs_op_delays_read(op, lateness, latency)
    late, whole = (
        Delays(each.count, each.p50_ns, each.p99_ns, each.worst_ns) if each.count else None
        for each in (lateness, latency)
    )
    return late, whole


def read_cost(op: Any) -> OperatorCost:
    """Read what an operator cost in the memory manager."""
    native = ffi.new("xs_cost *")
    lib.xs_op_cost_read(op, native)
    copied = {why: native.bytes_copied[i] for i, why in enumerate(REASONS)}
    return OperatorCost(
        sum(copied.values()), copied, native.allocations, native.reallocations,
        native.moved_reallocations, native.manager_ns,
    )  # fmt: skip
