"""The commands below `xstream linearroad`.

Heavy modules are imported by the commands that need them, not at the top.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linearroad.demo import demo_command
from linearroad.driver.command import drive_command
from linearroad.peers.command import compare_command
from linearroad.rating.command import rate_command
from linearroad.run.command import RunCommand, run_command
from linearroad.service.command import serve_command
from linearroad.storage import typed
from linearroad.validation.command import validate_command

app = typer.Typer(
    help="Linear Road: generate traffic, run the queries, check the answers.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Linear Road: generate traffic, run the queries, check the answers."""


@app.command()
def generate(
    out: Annotated[
        Path,
        typer.Option(
            help="Output directory; created if it does not exist.", parser=typed, metavar="PATH"
        ),
    ],
    expressways: Annotated[
        float,
        typer.Option(help="Number of expressways (L); of 1.5, the last has one direction only."),
    ] = 1,
    minutes: Annotated[int, typer.Option(help="Length of the stream in minutes.")] = 180,
    from_minute: Annotated[
        int,
        typer.Option(
            help="Start the stream at this minute; earlier traffic is simulated and dropped."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same bytes.")] = 1,
    format: Annotated[str, typer.Option(help="Output format: parquet or csv.")] = "parquet",
    traffic: Annotated[
        str, typer.Option(help="paper, or thesis: its accidents, in its nine-field rows.")
    ] = "paper",
    two_expressways: Annotated[
        float, typer.Option(help="Share of vehicles that travel on two expressways, from 0 to 0.2.")
    ] = 0.02,
    group: Annotated[
        int,
        typer.Option(help="Vehicles and requests stay within this many expressways; 0: all."),
    ] = 0,
    history: Annotated[
        bool,
        typer.Option("--history/--no-history", help="Also generate ten weeks of toll history."),
    ] = False,
    merged: Annotated[
        bool,
        typer.Option("--merged", help="With --format csv: also write one file, merged by time."),
    ] = False,
    master: Annotated[str | None, typer.Option(help="Spark master; default: local[*].")] = None,
) -> None:
    """Generate traffic, and optionally history. A second run completes an interrupted one."""
    from linearroad.generation.job import generate as run
    from linearroad.generation.parameters import TrafficParameters
    from linearroad.generation.progress import show

    parameters = TrafficParameters.of_l(
        expressways,
        minutes=minutes,
        seed=seed,
        from_minute=from_minute,
        two_expressways_share=two_expressways,
        format=format,
        traffic=traffic,
        group=group,
    )
    manifest = run(parameters, out, master=master, history=history, merged=merged, progress=show)
    totals = manifest["totals"]
    typer.echo(
        f"{out}: {totals['rows']:,} rows, {totals['reports']:,} position reports, "
        f"{totals['queries']:,} queries, {totals['vehicles']:,} vehicles"
    )


@app.command()
def describe(
    directory: Annotated[Path, typer.Argument(help="A directory created by `generate`.")],
    xway: Annotated[int, typer.Option(help="Number of the expressway to describe.")] = 0,
    html: Annotated[
        Path | None, typer.Option(help="HTML page to write; default: DIRECTORY/describe.html.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Verify the checksums of all files first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and write no page.")] = False,
) -> None:
    """Measure the stream of an expressway, compare it with the papers' figures, and draw it."""
    import json

    from linearroad.description.figures import check_files, measure_expressway
    from linearroad.generation.manifest import read_manifest
    from xstream.console import check_output_file, require_package

    manifest = read_manifest(directory)
    page = html or directory / "describe.html"
    if not as_json:
        require_package("plotly")
        check_output_file(page)
    if check:
        typer.echo(f"{check_files(directory, manifest)} files match their checksums", err=True)
    figures = measure_expressway(directory, manifest, xway)
    if as_json:
        typer.echo(json.dumps(figures.as_dict(), indent=1))
        return
    from linearroad.description.page import (
        further_rows,
        rows_beside_paper,
        summary_line,
        write_page,
    )

    write_page(page, figures, manifest["simulated"][xway]["accidents"])
    typer.echo(summary_line(figures))
    typer.echo(f"{'':<28}{f'here, {figures.seconds // 60} min':>20}{'papers, 180 min':>26}")
    for name, here, paper in rows_beside_paper(figures):
        typer.echo(f"{name:<28}{here:>20}{paper:>26}")
    for name, here in further_rows(figures):
        typer.echo(f"{name:<28}{here:>20}")
    typer.echo(f"pictures: {page}")


@app.command()
def pack(
    out: Annotated[Path, typer.Option(help="The archive (.tar.gz) or the folder to write.")],
) -> None:
    """Pack this environment for the executors of a cluster (XSTREAM_ENVIRONMENT)."""
    from linearroad.packing import pack as written

    typer.echo(f"{out}: {written(out) / 2**20:,.0f} MiB")


app.command("run", cls=RunCommand)(run_command)
app.command("validate")(validate_command)
app.command("rate")(rate_command)
app.command("drive")(drive_command)
app.command("serve")(serve_command)
app.command("compare")(compare_command)
app.command("demo")(demo_command)
