"""Sources on the network, beside bare loops in C that receive the same on loopback."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from xstream import io
from xstream.bench.bare_sockets import FRAME_BYTES, PAYLOAD_BYTES, BareSockets, on_processor
from xstream.bench.queries import Engine
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import Trial, interleave
from xstream.query import Query

__all__ = ["network"]

#: The share of the loop's rate at which nothing may be lost.
_HALF = 0.5


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Tcp:
    """float32 samples in frames of 64 KiB."""

    def __init__(self, bare: BareSockets, megabytes: float, engine: Engine) -> None:
        self.bare, self.engine = bare, engine
        self.frames = max(int(megabytes * 1e6) // FRAME_BYTES, 16)
        self.samples = self.frames * FRAME_BYTES // 4

    def by_engine(self) -> Trial:
        """Frames as tuples, and counted."""
        port = _free_port(socket.SOCK_STREAM)
        query = Query("network")
        out = query.source(io.tcp(port, np.float32, framing="length", listen=True)).count()
        with self.bare.running("tcp-send", port, self.frames) as sender:
            with on_processor(0, "receive"):
                run, _ = self.engine.timed_run(query)
            took_ns = self.bare.answer(sender)
        if run[out].samples != self.samples:
            raise AssertionError(f"{run[out].samples:,} samples of {self.samples:,} were received")
        return Trial(self.samples, took_ns / 1e9)

    def by_loop(self) -> Trial:
        """A loop of recv into one buffer."""
        port = _free_port(socket.SOCK_STREAM)
        with self.bare.running("tcp-receive", port) as receiver:
            with self.bare.running("tcp-send", port, self.frames) as sender:
                took_ns = self.bare.answer(sender)
            if self.bare.answer(receiver) != self.frames * (FRAME_BYTES + 4) + 4:
                raise AssertionError("the bare loop has not received everything")
        return Trial(self.samples, took_ns / 1e9)


class _Udp:
    """float32 samples in numbered datagrams; the samples of those that were received."""

    def __init__(self, bare: BareSockets, megabytes: float, engine: Engine) -> None:
        self.bare, self.engine = bare, engine
        self.datagrams = max(int(megabytes * 1e6) // PAYLOAD_BYTES // 64 * 64, 6400)
        self.per_datagram = PAYLOAD_BYTES // 4

    def by_engine(self, per_second: float = 0.0) -> tuple[Trial, dict[str, int]]:
        """Datagrams as tuples, and counted."""
        port = _free_port(socket.SOCK_DGRAM)
        query = Query("network")
        source = io.udp(port, np.float32, sequence=True, gap="split")
        query.source(source, name="in").count()
        with self.bare.running("udp-send", port, self.datagrams, per_second) as sender:
            with on_processor(0, "receive"):
                run, _ = self.engine.timed_run(query)
            took_ns = self.bare.answer(sender)
        counters = dict(run.stats["in"].counters)
        found = counters["datagrams"] + counters["lost"] + counters["late"]
        if found != self.datagrams:
            raise AssertionError(f"{found:,} of {self.datagrams:,} datagrams are accounted for")
        return Trial(counters["datagrams"] * self.per_datagram, took_ns / 1e9), counters

    def by_loop(self) -> Trial:
        """A loop of recvmmsg into the same buffers."""
        port = _free_port(socket.SOCK_DGRAM)
        with self.bare.running("udp-receive", port) as receiver:
            with self.bare.running("udp-send", port, self.datagrams, 0) as sender:
                took_ns = self.bare.answer(sender)
            received = self.bare.answer(receiver)
        return Trial(received * self.per_datagram, took_ns / 1e9)


def network(settings: Settings) -> Report:
    """Receive over loopback: throughput against bare loops, and loss at half the rate."""
    with tempfile.TemporaryDirectory(prefix="xstream-network-") as scratch:
        bare = BareSockets(Path(scratch))
        tcp = _Tcp(bare, settings.megabytes, settings.engine)
        udp = _Udp(bare, settings.megabytes, settings.engine)
        contenders: dict[str, Callable[[], Trial]] = {
            "xstream, tcp": tcp.by_engine,
            "bare recv loop, tcp": tcp.by_loop,
            "xstream, udp": lambda: udp.by_engine()[0],
            "bare recvmmsg loop, udp": udp.by_loop,
        }
        tcp.by_engine()
        results = interleave(contenders, settings.trials, settings.progress)
        bare_rate = results["bare recvmmsg loop, udp"].samples_per_second / udp.per_datagram
        _, counters = udp.by_engine(_HALF * bare_rate)
    report = Report("network", settings.to_json(), list(results.values()))
    report.checked = "the samples that were received, and that all datagrams are accounted for"
    for ours, theirs in (("tcp", "bare recv loop, tcp"), ("udp", "bare recvmmsg loop, udp")):
        ratio = results[f"xstream, {ours}"].samples_per_second / results[theirs].samples_per_second
        report.figures.append(Figure(f"{ours}, of a {theirs[:-5]}", ratio, "times", floor=0.8))
    report.figures.append(
        Figure("udp, lost at half the rate of the loop", _lost(counters), "datagrams", ceiling=0)
    )
    return report


def _lost(counters: dict[str, int]) -> int:
    return max(counters["lost"], counters["dropped"])
