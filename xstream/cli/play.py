"""`xstream play`: send a file over the network at the speed at which it was recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.console import Progress, within
from xstream.console.groups import grouped
from xstream.errors import InputError

if TYPE_CHECKING:
    from xstream.engine.operator import Operator
    from xstream.run import Run

__all__ = ["play"]

_TARGET = re.compile(r"(?P<scheme>udp|tcp)://(?P<address>[^/\s]+)/?")


@dataclass(frozen=True)
class Recording:
    """The file, and how it is read."""

    file: Annotated[
        Path, typer.Argument(help="WAV, FLAC, OGG, CSV, Parquet, Arrow, npy, raw or SigMF file.")
    ]
    repeat: Annotated[
        int, typer.Option(help="How often; 0 repeats until Ctrl-C.", callback=within(0, 10**9))
    ] = 1
    window: Annotated[
        int, typer.Option(help="Samples that are sent together.", callback=within(1, 2**20))
    ] = 256
    rate_hz: Annotated[
        float | None, typer.Option(help="Sample rate, for files that do not know theirs.")
    ] = None
    dtype: Annotated[
        str | None, typer.Option(help="Sample type of raw files, for example int16.")
    ] = None
    by: Annotated[
        str | None,
        typer.Option(help="Send rows of a table, each at the seconds in this column."),
    ] = None

    def source(self) -> Operator:
        """The file as a source."""
        from xstream.io.opened import RepeatedFile, opened

        options: dict[str, Any] = {"window": self.window, "rate_hz": self.rate_hz}
        if self.dtype is not None:
            options["dtype"] = self.dtype
        if self.by is not None:
            options["layout"] = "rows"
        try:
            return RepeatedFile(opened(self.file, **options), self.repeat)
        except TypeError as error:
            raise InputError(f"{self.file}: {error}") from error


@dataclass(frozen=True)
class Target:
    """Where it is sent, and in which form."""

    to: Annotated[str, typer.Option(help="Where to send it: udp://HOST:PORT or tcp://HOST:PORT.")]
    listen: Annotated[
        bool, typer.Option("--listen", help="TCP: wait for a peer instead of connecting.")
    ] = False
    framing: Annotated[
        str, typer.Option(help="TCP: none, or length for a length before every window.")
    ] = "none"
    plain: Annotated[
        bool, typer.Option("--plain", help="UDP: datagrams without a sequence number.")
    ] = False

    def parts(self) -> tuple[str, str]:
        """The scheme and the address."""
        form = _TARGET.fullmatch(self.to)
        if form is None:
            raise InputError(f"--to is udp://HOST:PORT or tcp://HOST:PORT, not {self.to!r}")
        scheme, address = form["scheme"], form["address"]
        if scheme == "udp" and (self.listen or self.framing != "none"):
            raise InputError("--listen and --framing are options of tcp://")
        if scheme == "tcp" and self.plain:
            raise InputError("--plain is an option of udp://")
        return scheme, address


Speed = Annotated[
    float,
    typer.Option(
        help="How many times as fast as recorded; 0 sends without pauses.", callback=within(0, 1e9)
    ),
]


@grouped
def play(recording: Recording, target: Target, speed: Speed = 1.0) -> None:
    """Send a file over UDP or TCP, paced as it was recorded.

    The command prints the source that receives it, for a query in another terminal.
    """
    from xstream import io
    from xstream.query import Query

    scheme, address = target.parts()
    source = recording.source()
    if speed:
        source = io.paced(source, speed, by=recording.by)
    sink = (
        io.udp(address, sequence=not target.plain)
        if scheme == "udp"
        else io.tcp(address, framing=target.framing, listen=target.listen)
    )
    name = f"play {recording.file.name}"
    query = Query(name)
    stream = query.source(source, name="file")
    stream.write(sink, name="out")
    _say_how_to_receive(scheme, address, stream.schema, target)
    with Progress(name, unit="sample") as progress:
        run = query.run(progress=lambda run: progress.update(run.source_samples))
    _say_end(run)


def _say_how_to_receive(scheme: str, address: str, schema: Any, target: Target) -> None:
    """The source that receives what is sent."""
    from xstream.io.sink import signals_of

    signals = signals_of("play", schema)
    fields = list(zip(signals.names, map(str, signals.dtypes), strict=True))
    dtype = repr(fields[0][1]) if len(fields) == 1 else repr(fields)
    rate_hz = signals.timebase.rate_hz
    given = [f'"{address}"', dtype]
    given += [f"rate_hz={rate_hz:g}"] if rate_hz is not None else []
    given += ['layout="rows"'] if signals.records else []
    if scheme == "udp":
        given += [] if target.plain else ["sequence=True"]
    else:
        given += [f'framing="{target.framing}"'] if target.framing != "none" else []
        given += [] if target.listen else ["listen=True"]
    typer.echo(f"receive with: xs.io.{scheme}({', '.join(given)})")


def _say_end(run: Run) -> None:
    sent, lateness = run.stats["out"].counters, run.stats["file"].lateness
    text = f"sent {run.source_samples:,} samples, {sent['bytes']:,} bytes"
    if "datagrams" in sent:
        text += f", {sent['datagrams']:,} datagrams"
    if sent.get("refused"):
        text += f" (nobody listens: {sent['refused']:,} answers)"
    if lateness is not None:
        text += f"; at most {lateness.worst_ns / 1e6:.1f} ms late"
    typer.echo(f"{text} in {run.wall_seconds:.1f} s" + (", stopped" if run.stopped else ""))
