"""`xstream linearroad generate`: the command line. The job is imported when the command runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from linearroad.options import option, path_option
from xstream.console.groups import grouped

__all__ = ["generate_command"]


@dataclass(frozen=True)
class Traffic:
    """The traffic that is simulated."""

    expressways: Annotated[
        float, option("Number of expressways (L); of 1.5, the last has one direction only.")
    ] = 1
    minutes: Annotated[int, option("Length of the stream in minutes.")] = 180
    from_minute: Annotated[
        int, option("Start the stream at this minute; earlier traffic is simulated and dropped.")
    ] = 0
    seed: Annotated[int, option("Random seed; the same seed gives the same bytes.")] = 1
    format: Annotated[str, option("Output format: parquet or csv.")] = "parquet"
    traffic: Annotated[str, option("paper, or thesis: its accidents, in its nine-field rows.")] = (
        "paper"
    )
    two_expressways: Annotated[
        float, option("Share of vehicles that travel on two expressways, from 0 to 0.2.")
    ] = 0.02
    group: Annotated[
        int, option("Vehicles and requests stay within this many expressways; 0: all.")
    ] = 0


Out = Annotated[Path, path_option("Output directory; created if it does not exist.")]
_HISTORY = "Also generate ten weeks of toll history."
History = Annotated[bool, option(_HISTORY, "--history/--no-history")]
_MERGED = "With --format csv: also write one file, merged by time."
Merged = Annotated[bool, option(_MERGED, "--merged")]
Master = Annotated[str | None, option("Spark master; default: local[*].")]


@grouped
def generate_command(
    out: Out,
    traffic: Traffic,
    history: History = False,
    merged: Merged = False,
    master: Master = None,
) -> None:
    """Generate traffic, and optionally history. A second run completes an interrupted one."""
    from linearroad.generation.job import generate
    from linearroad.generation.parameters import TrafficParameters
    from linearroad.generation.progress import show

    parameters = TrafficParameters.of_l(
        traffic.expressways,
        minutes=traffic.minutes,
        seed=traffic.seed,
        from_minute=traffic.from_minute,
        two_expressways_share=traffic.two_expressways,
        format=traffic.format,
        traffic=traffic.traffic,
        group=traffic.group,
    )
    manifest = generate(
        parameters, out, master=master, history=history, merged=merged, progress=show
    )
    totals = manifest["totals"]
    typer.echo(
        f"{out}: {totals['rows']:,} rows, {totals['reports']:,} position reports, "
        f"{totals['queries']:,} queries, {totals['vehicles']:,} vehicles"
    )
