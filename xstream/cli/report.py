"""`xstream report`: one page with all results of a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xstream.console import check_output_file, require_package

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Directory with results.")],
    out: Annotated[
        Path | None, typer.Option(help="Page to write; the default is DIR/report.html.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the list of results as JSON.")
    ] = False,
) -> None:
    """Write one page with all experiments, profiles, benchmarks and ratings in DIR."""
    from xstream.report.gathered import KINDS, gather, gathered_page
    from xstream.report.page import write

    require_package("plotly")
    target = out or folder / "report.html"
    if folder.is_dir():  # otherwise `gathered_page` raises the error
        check_output_file(target)
    page = gathered_page(folder)
    write(target, page)
    found = gather(folder)
    if json:
        import json as writer

        rows = [{"kind": kind, "file": str(path)} for kind, path, _ in found]
        typer.echo(writer.dumps({"page": str(target), "gathered": rows}, indent=2))
        return
    for kind, path, _ in found:
        typer.echo(f"{KINDS[kind]:10} {path}")
    typer.echo(f"page: {target}")
