"""The commands below `xstream linearroad`.

Nothing heavy is imported at the top: each command imports what it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Linear Road: generate traffic, run the queries, check the answers.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Linear Road: generate traffic, run the queries, check the answers."""


@app.command()
def generate(
    out: Annotated[Path, typer.Option(help="Directory to write; made if it is missing.")],
    expressways: Annotated[int, typer.Option(help="Number of expressways (L).")] = 1,
    minutes: Annotated[int, typer.Option(help="Length of the stream.")] = 180,
    from_minute: Annotated[
        int, typer.Option(help="Begin at this minute; what came before is simulated and cut off.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 1,
    format: Annotated[str, typer.Option(help="parquet or csv.")] = "parquet",
    two_expressways: Annotated[
        float, typer.Option(help="Share of vehicles that travel on two expressways.")
    ] = 0.02,
    history: Annotated[
        bool, typer.Option("--history/--no-history", help="Ten weeks of toll history as well.")
    ] = False,
    merged: Annotated[
        bool, typer.Option("--merged", help="With csv: also one file, merged by time.")
    ] = False,
    master: Annotated[str | None, typer.Option(help="Spark master; local[*] if not given.")] = None,
) -> None:
    """Generate traffic, and history if wanted; a second run finishes what is missing."""
    from linearroad.generate import generate as run
    from linearroad.parameters import TrafficParameters
    from linearroad.progress import show

    parameters = TrafficParameters(
        expressways=expressways,
        minutes=minutes,
        seed=seed,
        from_minute=from_minute,
        two_expressways_share=two_expressways,
        format=format,
    )
    manifest = run(parameters, out, master=master, history=history, merged=merged, progress=show)
    totals = manifest["totals"]
    typer.echo(
        f"{out}: {totals['rows']:,} rows, {totals['reports']:,} position reports, "
        f"{totals['queries']:,} queries, {totals['vehicles']:,} vehicles"
    )
