"""The commands below `xstream linearroad`.

Heavy modules are imported by the commands that need them, not at the top.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linearroad.demo import demo_command
from linearroad.driver.command import drive_command
from linearroad.generation.command import generate_command
from linearroad.peers.command import compare_command
from linearroad.rating.command import rate_command
from linearroad.run.command import RunCommand, run_command
from linearroad.service.command import serve_command
from linearroad.validation.command import validate_command

app = typer.Typer(
    help="Linear Road: generate traffic, run the queries, check the answers.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Linear Road: generate traffic, run the queries, check the answers."""


app.command("generate")(generate_command)


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
    from linearroad.archive import pack as written

    typer.echo(f"{out}: {written(out) / 2**20:,.0f} MiB")


app.command("run", cls=RunCommand)(run_command)
app.command("validate")(validate_command)
app.command("rate")(rate_command)
app.command("drive")(drive_command)
app.command("serve")(serve_command)
app.command("compare")(compare_command)
app.command("demo")(demo_command)
