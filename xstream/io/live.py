"""`LiveChannel`: a source and sink whose messages are received and sent in a Python thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.engine.attachment import Outcome
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import MAX_SIZE, Operator, whole_number
from xstream.engine.schema import Schema
from xstream.errors import InputError
from xstream.io.feed import Block, Feed
from xstream.io.not_a_number import by_policy, check_policy
from xstream.io.output import Columns, Signals, TableWriter
from xstream.io.sink import Writer, signals_of
from xstream.io.transmitter import GRACE_S
from xstream.io.wire import Wire, timebase, wire, wire_of

__all__ = ["LiveChannel", "LiveFeed"]


@dataclass(frozen=True, eq=False)
class LiveChannel(Operator):
    """Blocks from outside, and columns to outside, without a position."""

    ports = ()
    #: What a file sink asks of its file: no place for indices, and segments one after another.
    indexed = False
    gap = "join"

    address: str
    dtype: Any = None
    rate_hz: float | None = None
    window: int = 4096
    layout: str = "fields"
    channels: int = 1
    partial: bool = True
    start_time: float = 0.0
    nan: str = "keep"
    max_message_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        check_policy(self.kind, self.nan)
        whole_number(self, "window", 1, MAX_SIZE)
        whole_number(self, "max_message_bytes", 1, 2**31)
        self.wire()
        timebase(self.rate_hz, self.start_time)

    @property
    def label(self) -> str:
        return f"{self.kind} {self.address}"

    def blocks(self, over: threading.Event) -> Iterator[Block]:
        """Yield blocks of columns until the stream ends or `over` is set."""
        raise NotImplementedError

    def writer(self, signals: Signals, over: threading.Event) -> TableWriter:
        """What sends columns until `over` is set."""
        raise NotImplementedError

    # -- as a source -------------------------------------------------------------------------

    def wire(self) -> Wire:
        """The records of the source."""
        dtype = np.float32 if self.dtype is None else self.dtype
        return wire(self.kind, dtype, self.channels, self.layout)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        contents = self.wire().contents
        times = timebase(self.rate_hz, self.start_time, contents.interleaved)
        return contents.schemas(self.label, self.layout, times)

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return LiveFeed(plan, self).live_source(plan)

    def columns_of(self, message: Any) -> Block:
        """A message of records as columns; an InputError if it is not one."""
        records = self.wire()
        size = memoryview(message).nbytes
        if size > self.max_message_bytes:
            raise InputError(
                f"{self.label}: a message of {size:,} bytes, and max_message_bytes is "
                f"{self.max_message_bytes:,}"
            )
        if size % records.dtype.itemsize:
            raise InputError(
                f"{self.label}: a message of {size:,} bytes is no multiple of the "
                f"{records.dtype.itemsize} bytes of a record"
            )
        return columns_of_records(records, message)

    # -- as a sink ---------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Its name in the errors of a sink."""
        return self.label

    def sink_operator(self) -> Operator:
        """The channel as a sink."""
        return _LiveSink(self)

    def records_of(self, columns: Columns, signals: Signals) -> npt.NDArray[Any]:
        """Columns as an array of records."""
        records = wire_of(self.kind, signals, self.dtype)
        made = np.empty(len(columns[0]), records.dtype)
        if made.dtype.names is None:
            made[:] = columns[0]
        for name, column in zip(made.dtype.names or (), columns, strict=False):
            made[name] = column
        return made


def columns_of_records(records: Wire, message: Any) -> Block:
    """The columns of records; a single one is not copied."""
    found: npt.NDArray[Any] = np.frombuffer(message, records.dtype)
    if records.interleaved > 1:
        return (found.reshape(-1),)
    if found.dtype.names is not None:
        return [found[name] for name in records.names]
    return [found] if found.ndim == 1 else [found[:, i] for i in range(found.shape[1])]


class LiveFeed(Feed):
    """Runs the blocks of a channel in a thread, and notes when each has arrived."""

    def __init__(self, plan: NativePlan, channel: LiveChannel) -> None:
        self.over = threading.Event()
        contents = channel.wire().contents
        dtypes = contents.column_dtypes(channel.layout)
        super().__init__(plan, self._checked, dtypes, {})
        self.channel, self.row_samples = channel, contents.interleaved

    def blocks(self, row: int) -> Iterator[Block]:
        """The blocks of the channel, which begin at a row."""
        return self.channel.blocks(self.over)

    def _checked(self, row: int) -> Iterator[Block]:
        """The blocks, with the policy for NaNs."""
        with closing(self.blocks(row)) as blocks:  # type: ignore[type-var]
            for block in blocks:
                yield from by_policy(
                    block, self.channel.nan, self.channel.label, row, self.row_samples
                )
                row += len(block[0]) // self.row_samples

    def native_source(self, plan: NativePlan) -> Any:
        """The native source, with this feed as its attachment."""
        layout = "fields" if self.channel.layout == "interleaved" else self.channel.layout
        return self.source(plan, layout, self.channel.window, self.channel.partial)

    def live_source(self, plan: NativePlan) -> Any:
        """The native source, whose attachment has no position."""
        self.native_source(plan)
        plan.attached[-1] = (self.op, _Unrepeatable(self, "what was received is gone"))
        return self.op

    def arrived_ns(self) -> int:
        """The time at which a block was received."""
        return time.monotonic_ns()

    def end(self, outcome: Outcome) -> None:
        """Stop receiving."""
        self.over.set()
        super().end(outcome)


class _Unrepeatable:
    """An attachment without the positions of the one that it stands for."""

    def __init__(self, of: Feed | Writer, guarantee: str) -> None:
        self._of, self.guarantee = of, guarantee

    @property
    def error(self) -> BaseException | None:
        """The error, if the operator failed."""
        return self._of.error

    def begin(self) -> None:
        """Called when the run starts."""
        self._of.begin()

    def end(self, outcome: Outcome) -> None:
        """Called when the run is over."""
        self._of.end(outcome)


@dataclass(frozen=True)
class _LiveSink(Operator):
    """Sends every tuple to a channel."""

    channel: LiveChannel

    @property
    def label(self) -> str:
        return f"write {self.channel.label}"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        wire_of(self.channel.kind, signals_of(self.label, inputs[0]), self.channel.dtype)
        return ()

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        signals = signals_of(self.label, inputs[0])
        writer = _LiveWriter(plan, self.channel, inputs[0], signals)
        writer.op = checked(lib.xs_op_drain_sink(plan.handle, writer.drain))
        plan.attach(
            writer.op,
            _Unrepeatable(writer, "what was sent cannot be taken back: it is sent again"),
        )
        return writer.op


class _LiveWriter(Writer):
    """Writes groups of tuples to a channel, as soon as they are there."""

    def __init__(
        self, plan: NativePlan, channel: LiveChannel, schema: Schema, signals: Signals
    ) -> None:
        super().__init__(plan, channel, schema, signals)  # type: ignore[arg-type]
        lib.xs_drain_prompt(self.drain)
        self.channel, self.stopped = channel, threading.Event()

    def begin(self) -> None:
        """Start to send."""
        self._format = self.channel.writer(self.signals, self.stopped)
        self._thread = threading.Thread(target=self._write, name="xstream sender", daemon=True)
        self._thread.start()

    def end(self, outcome: Outcome) -> None:
        """Send the rest."""
        if outcome == "failed":
            self.stopped.set()
        super().end(outcome)

    def wait_for(self, thread: threading.Thread) -> None:
        """Wait until the rest is sent. After a stop a peer that takes nothing is given up."""
        try:
            while thread.is_alive():
                thread.join(0.05)
                if self.stop_asked():
                    thread.join(GRACE_S)
                    self.stopped.set()
        except KeyboardInterrupt:
            self.stopped.set()
        thread.join()

    def _described(self, error: BaseException) -> BaseException:
        if isinstance(error, OSError):
            return InputError(f"{self.channel.label}: {error.strerror or error}")
        return error
