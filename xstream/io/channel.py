"""`xs.io.channel`: tuples from one query to another that a different thread runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xstream._native import ffi, lib
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Schema, SchemaLike, schema
from xstream.errors import GraphError, SegmentMemoryError

__all__ = ["Channel", "channel"]

MOST_TUPLES = 1 << 24


@dataclass(frozen=True, eq=False)
class Channel(Operator):
    """A source of one query that is filled by another (`stream.write`), once.

    At most `capacity` tuples wait in it. A query that writes faster than the other reads waits; it
    closes the channel when it ends, and then the source ends. Both queries run with the same
    memory manager.
    """

    kind = "channel"
    ports = ()
    out: Schema
    capacity: int
    handle: Any = field(repr=False)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self.out,)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_channel_source(plan.handle, self.handle))

    def sink_operator(self) -> Operator:
        """The other end."""
        return ChannelSink(self)

    def close(self) -> None:
        """Say that nothing more will come: the query that writes has ended before its streams."""
        lib.xs_channel_close(self.handle)

    def abandon(self) -> None:
        """Say that nobody reads any more: whatever is written from now on is dropped."""
        lib.xs_channel_abandon(self.handle)

    def __len__(self) -> int:
        """How many tuples wait."""
        return int(lib.xs_channel_length(self.handle))


@dataclass(frozen=True)
class ChannelSink(Operator):
    """Puts every tuple into a channel."""

    kind = "channel sink"
    channel: Channel

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        if inputs[0].types != self.channel.out.types:
            raise GraphError(f"the channel carries {self.channel.out}, not {inputs[0]}")
        return ()

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return checked(lib.xs_op_channel_sink(plan.handle, self.channel.handle))


def channel(out: SchemaLike, capacity: int = 1024) -> Channel:
    """A channel for tuples of a schema, from a stream of one query to another query.

    >>> import threading, xstream as xs
    >>> near, far = xs.Query("near"), xs.Query("far")
    >>> link = xs.io.channel(int)
    >>> sent = near.source(xs.io.iterable([1, 2, 3], out=int)).write(link)
    >>> received = far.source(link).collect()
    >>> manager = xs.memory_manager("refcount-lazy")
    >>> worker = threading.Thread(target=near.run, args=("df", manager))
    >>> worker.start()
    >>> far.run(memory=manager)[received]
    [1, 2, 3]
    >>> worker.join()
    """
    fields = schema(out)
    if not isinstance(capacity, int) or not 1 <= capacity <= MOST_TUPLES:
        raise GraphError(f"a channel holds 1 to {MOST_TUPLES:,} tuples, not {capacity!r}")
    handle = lib.xs_channel_new(capacity, len(fields), fields.segment_bits)
    if not handle:
        raise SegmentMemoryError(f"no memory is left for a channel of {capacity:,} tuples")
    return Channel(fields, capacity, ffi.gc(handle, lib.xs_channel_drop))
