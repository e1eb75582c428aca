"""`xs.io.udp`: records in datagrams, as a source and as a sink."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from xstream._native import lib
from xstream.engine.native import NativePlan
from xstream.engine.operator import MAX_SIZE, Operator, finite_number, whole_number
from xstream.engine.schema import Schema
from xstream.errors import GraphError, InputError
from xstream.io.endpoint import Endpoint, endpoint
from xstream.io.not_a_number import check_policy
from xstream.io.receiver import Receiver
from xstream.io.transmitter import SocketSink, Transmitter
from xstream.io.wire import Wire, timebase, wire

__all__ = ["DATAGRAM_HEADER", "UdpSocket", "udp"]

#: The header of `sequence=True`: the number of the datagram, and the index of its first sample.
DATAGRAM_HEADER = np.dtype([("sequence", "<u8"), ("sample", "<u8")])
GAPS = {"error": lib.XS_GAP_ERROR, "null": lib.XS_GAP_NULL, "split": lib.XS_GAP_SPLIT}
_MOST_HEADER_BYTES = 64
_MOST_BYTES = 65_535
#: What fits into an Ethernet frame, with the headers of IPv6 and UDP.
DATAGRAM_BYTES = 1_452
_RCVBUFFORCE, _SO_MEMINFO, _MEMINFO_DROPS = 33, 55, 8


@dataclass(frozen=True, eq=False)
class UdpSocket(Operator):
    """A UDP socket as a source of records, and as a sink (`stream.write`)."""

    kind = "udp"
    ports = ()

    endpoint: Endpoint
    dtype: Any = None
    rate_hz: float | None = None
    window: int | None = None
    layout: str = "fields"
    channels: int = 1
    header: np.dtype[Any] | None = None
    gap: str = "error"
    reorder: int = 32
    reorder_s: float = 0.05
    idle_s: float | None = None
    ends: bool = True
    on_error: str = "raise"
    max_gap: int = 1 << 24
    datagram_bytes: int = DATAGRAM_BYTES
    buffer_bytes: int = 8 << 20
    partial: bool = True
    start_time: float = 0.0
    nan: str = "keep"

    def __post_init__(self) -> None:
        check_policy(self.kind, self.nan)
        self._check_choice("gap", tuple(GAPS))
        if self.header is None and self.gap != "error":
            raise GraphError(
                f"udp: gap={self.gap!r} needs sequence=: without numbers, nobody knows which "
                "datagrams are missing"
            )
        self._check_choice("on_error", ("raise", "drop"))
        if self.window is not None:
            whole_number(self, "window", 1, MAX_SIZE)
        whole_number(self, "reorder", 0, 4096)
        whole_number(self, "max_gap", 0, MAX_SIZE)
        whole_number(self, "datagram_bytes", 1, _MOST_BYTES)
        whole_number(self, "buffer_bytes", 1, 2**30)
        finite_number(self, "reorder_s", self.reorder_s, 0.0, 3600.0)
        if self.idle_s is not None:
            finite_number(self, "idle_s", self.idle_s, 1e-6, math.inf)
        room = self.datagram_bytes - (self.header.itemsize if self.header is not None else 0)
        if self.wire().dtype.itemsize > room:
            raise GraphError(
                f"udp: a record of {self.wire().dtype.itemsize} bytes does not fit into a datagram "
                f"of {self.datagram_bytes}"
            )
        timebase(self.rate_hz, self.start_time)

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        if getattr(self, name) not in choices:
            known = ", ".join(map(repr, choices))
            raise GraphError(f"udp: {name} is {known}, not {getattr(self, name)!r}")

    @property
    def label(self) -> str:
        return f"udp {self.endpoint}"

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
        records = self.wire()
        record, _fields = records.native(self.nan)
        window = 1 if records.layout == "rows" else self.window
        intake = lib.xs_datagrams_new(plan.manager._handle, record, self._options(window))
        receiver = DatagramReceiver(self, intake, len(records.names))
        return receiver.source(plan, self.layout, window, self.partial)

    def _options(self, window: int | None) -> dict[str, Any]:
        return {
            **_header_options(self.header), "max_bytes": _MOST_BYTES, "window": window or 0,
            "max_gap": self.max_gap, "gap": GAPS[self.gap], "reorder": self.reorder,
            "reorder_ns": int(self.reorder_s * 1e9), "idle_ns": int((self.idle_s or 0) * 1e9),
            "ends": self.ends, "drop_malformed": self.on_error == "drop",
        }  # fmt: skip

    def sink_operator(self) -> Operator:
        """The socket as a sink."""
        if self.header is not None and self.header != DATAGRAM_HEADER:
            raise GraphError("udp: a sink sends the header of sequence=True, or none")
        return SocketSink(self)

    def transmitter(self, plan: NativePlan, schema: Schema, records: Wire) -> DatagramTransmitter:
        """What sends the tuples of a stream."""
        options = {
            "framed": 0, "max_frame_bytes": self.datagram_bytes, "datagrams": 1,
            "sequence": self.header is not None,
        }  # fmt: skip
        return DatagramTransmitter(plan, self, schema, records, options)


def _header_options(header: np.dtype[Any] | None) -> dict[str, int]:
    options = {"header_bytes": 0 if header is None else header.itemsize}
    for name in ("sequence", "sample"):
        options |= {f"{name}_offset": 0, f"{name}_bytes": 0, f"{name}_swap": 0}
        if header is not None and header.fields is not None and name in header.fields:
            dtype, offset = header.fields[name][:2]
            options[f"{name}_offset"], options[f"{name}_bytes"] = offset, dtype.itemsize
            options[f"{name}_swap"] = not dtype.isnative
    return options


def _checked_header(sequence: bool | npt.DTypeLike) -> np.dtype[Any] | None:
    """The dtype of the header of every datagram, from the option `sequence`."""
    if sequence is False or sequence is None:
        return None
    header = DATAGRAM_HEADER if sequence is True else np.dtype(sequence)
    fields: Mapping[str, Any] = header.fields or {}
    numbers = [fields[name][0] for name in ("sequence", "sample") if name in fields]
    if "sequence" not in fields or any(each.kind not in "ui" for each in numbers):
        raise GraphError(
            "udp: sequence is True, or a structured dtype with a whole number 'sequence' (and "
            f"'sample'), not {sequence!r}"
        )
    if header.itemsize > _MOST_HEADER_BYTES:
        raise GraphError(f"udp: a header has at most {_MOST_HEADER_BYTES} bytes")
    return header


class DatagramReceiver(Receiver):
    """Receives datagrams on a bound socket."""

    COUNTERS: ClassVar[Mapping[str, int]] = {
        "bytes": lib.XS_NET_BYTES, "datagrams": lib.XS_NET_MESSAGES,
        "dropped": lib.XS_NET_DROPPED, "lost": lib.XS_NET_LOST,
        "lost_samples": lib.XS_NET_LOST_SAMPLES, "duplicates": lib.XS_NET_DUPLICATES,
        "reordered": lib.XS_NET_REORDERED, "late": lib.XS_NET_LATE, "strays": lib.XS_NET_STRAYS,
        "restarts": lib.XS_NET_RESTARTS, "malformed": lib.XS_NET_MALFORMED,
    }  # fmt: skip
    guarantee = "a datagram that was received cannot be asked for again"

    def __init__(self, declared: UdpSocket, intake: Any, columns: int) -> None:
        super().__init__(declared.label, intake, columns)
        self.declared = declared
        self._socket: socket.socket | None = None
        self._dropped = 0

    def counters(self) -> dict[str, int]:
        """What was received, lost and left out; `dropped` by the operating system."""
        counted = super().counters()
        if self._socket is not None:
            self._dropped = _dropped(self._socket)
        return {**counted, "dropped": max(counted["dropped"], self._dropped)}

    def open(self) -> None:
        """Bind the socket."""
        family, address = self.declared.endpoint.addresses(socket.SOCK_DGRAM)[0]
        receiving = socket.socket(family, socket.SOCK_DGRAM)
        try:
            receiving.bind(address)
        except OSError as error:
            receiving.close()
            raise InputError(f"{self.where} cannot be bound: {error.strerror or error}") from error
        _enlarge_buffer(receiving, self.declared.buffer_bytes)
        self._socket = receiving

    def serve(self) -> None:
        """Receive until the stream ends or the run is over."""
        receiving = self._socket
        assert receiving is not None
        with receiving:
            why = self.lost(receiving)
            self.counters()
            self._socket = None
        if why:
            raise InputError(f"{self.where}: {why}")


def _enlarge_buffer(receiving: socket.socket, wanted: int) -> None:
    """The buffer of the socket as large as allowed; only root may exceed the system's limit."""
    for option in (_RCVBUFFORCE, socket.SO_RCVBUF):
        try:
            receiving.setsockopt(socket.SOL_SOCKET, option, wanted)
        except OSError:
            continue
        return


def _dropped(receiving: socket.socket) -> int:
    """The datagrams that the operating system dropped because the buffer was full."""
    try:
        found = receiving.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 9 * 4)
    except OSError:  # an older kernel, or the socket is closed
        return 0
    return int(struct.unpack("9I", found)[_MEMINFO_DROPS])


class DatagramTransmitter(Transmitter):
    """Sends datagrams to an address."""

    guarantee = (
        "datagrams may be lost, and cannot be taken back: after a failure those since the last "
        "checkpoint are sent again"
    )

    def __init__(
        self, plan: NativePlan, declared: UdpSocket, schema: Schema, records: Wire, options: Any
    ) -> None:
        super().__init__(plan, declared.label, schema, records, options)
        self.declared = declared

    def counters(self) -> dict[str, int]:
        """What was sent; `refused`: answers that nobody listens at the address."""
        sent = super().counters()
        return {"datagrams": sent["messages"], **sent}

    def serve(self) -> None:
        """Send until the streams end."""
        family, address = self.declared.endpoint.addresses(socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as sending:
            try:
                sending.connect(address)
            except OSError as error:
                raise InputError(f"{self.where} cannot be reached: {error.strerror}") from error
            if why := self.send_all(sending):
                raise InputError(f"{self.where}: {why}")


def udp(
    address: str | int,
    dtype: npt.DTypeLike | None = None,
    rate_hz: float | None = None,
    window: int | None = None,
    *,
    sequence: bool | npt.DTypeLike = False,
    gap: str = "error",
    layout: str = "fields",
    channels: int = 1,
    **options: Any,
) -> UdpSocket:
    """Records of a dtype in datagrams: a source bound to `address`, or a sink that sends to it.

    `address` is "host:port", or a port of the loopback interface. Without `window` every datagram
    is a tuple. With `sequence=True` every datagram begins with its number and the index of its
    first sample (two unsigned integers of eight bytes, little-endian): datagrams are put in order,
    duplicates are left out, and `gap` says what becomes of missing ones: "error", "null" (NaN or 0
    in their place) or "split" (the indices jump). An empty datagram ends the stream, as the sink
    sends it. `run.stats[...].counters` accounts for all datagrams (docs/sources.md).

    >>> import numpy as np, threading, xstream as xs
    >>> q = xs.Query("receive")
    >>> out = q.source(xs.io.udp(9713, np.int16, window=4, sequence=True)).collect()
    >>> send = xs.Query("send")
    >>> samples = xs.io.array(np.arange(8, dtype=np.int16), rate_hz=4.0, window=2)
    >>> sink = send.source(xs.io.paced(samples)).write(xs.io.udp(9713, sequence=True))
    >>> sending = threading.Thread(target=send.run)
    >>> sending.start()
    >>> [np.asarray(seg).tolist() for seg in q.run()[out]]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    >>> sending.join()
    """
    return UdpSocket(
        endpoint("udp", address), dtype, rate_hz, window, layout, channels,
        _checked_header(sequence), gap, **options,
    )  # fmt: skip
