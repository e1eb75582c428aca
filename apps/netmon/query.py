"""The query: aligns receptions by packet, clusters receivers, reconstructs packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import xstream as xs
from netmon._kernels import BY_CLUSTERS, CRC_TABLE, LOST, align, cluster, correlate, reconstruct
from netmon.packets import Receptions
from xstream.errors import InputError

__all__ = ["Delivered", "Monitored", "declare", "monitor", "sources"]

#: Correlation of errors above which two receivers are in one cluster.
TOGETHER = 0.1
#: Packets that a receiver may be ahead of another before the missing ones count as lost.
SLOTS = 8192


@dataclass(frozen=True, slots=True)
class Monitored:
    """The streams of a declared query."""

    #: (number, how, words) of every packet; `how` is a constant of _kernels, LOST to BY_EVERYBODY.
    packets: xs.Stream
    #: (cluster, weight) of the receivers, for each block.
    clusters: xs.Stream


@dataclass(frozen=True)
class Delivered:
    """The results: packets by number, how each was obtained, and the clusters."""

    numbers: npt.NDArray[np.int64]
    how: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint64]
    clusters: tuple[int, ...]

    @property
    def reconstructed(self) -> int:
        """Packets that no receiver got correctly and that were reconstructed."""
        return int((self.how >= BY_CLUSTERS).sum())

    @property
    def lost(self) -> int:
        """Packets that were received but not reconstructed."""
        return int((self.how == LOST).sum())


def sources(query: xs.Query, heard: Receptions, packets_a_segment: int = 64) -> list[xs.Stream]:
    """Add a source for each receiver, with several receptions per segment."""
    if packets_a_segment < 1:
        raise InputError(f"a segment must hold at least one packet, not {packets_a_segment}")
    return [
        query.source(
            xs.io.array(stream, window=packets_a_segment * heard.row),
            name=f"receiver {number}",
        )
        for number, stream in enumerate(heard.streams)
    ]


def declare(
    receivers: Sequence[xs.Stream], words: int, together: float = TOGETHER, slots: int = SLOTS
) -> Monitored:
    """Declare the query; packets have `words` words.

    >>> import xstream as xs
    >>> from netmon import declare, generate
    >>> from netmon.query import sources
    >>> heard = generate(packets=300, seed=2)
    >>> q = xs.Query("netmon")
    >>> monitored = declare(sources(q, heard), heard.words)
    >>> packets, _ = monitored.packets.count(), monitored.clusters.count()
    >>> q.run()[packets] == 300
    True
    """
    count = len(receivers)
    aligned = receivers[0].union(*receivers[1:]).iterate(
        align(count, words, slots), count, words, name="align"
    )  # fmt: skip
    pairs = aligned.iterate(correlate(count), count, words, name="correlate")
    clusters = pairs.iterate(cluster, together, name="cluster")
    packets = aligned.zip(clusters).iterate(
        reconstruct(count, words), count, words, CRC_TABLE, name="reconstruct"
    )
    return Monitored(packets, clusters)


def monitor(
    heard: Receptions, scheduler: str = "df", memory: str = "refcount-lazy", batch: int = 64
) -> Delivered:
    """Run the query over receptions and return its results."""
    query = xs.Query("netmon")
    monitored = declare(sources(query, heard), heard.words)
    packets, clusters = monitored.packets.collect(), monitored.clusters.collect()
    run = query.run(scheduler=scheduler, memory=memory, tuple_burst=batch).uninterrupted()
    rows, last = run[packets], run[clusters]
    return Delivered(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([np.asarray(row[2]) for row in rows], np.uint64).reshape(len(rows), heard.words),
        tuple(np.asarray(last[-1][0]).tolist()) if last else (),
    )
