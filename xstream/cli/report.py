"""`xstream report`: one page of everything that was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xstream.console import check_output_file, require_package

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the results lie.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; DIR/report.html if not given.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Gather the experiments, profiles, benchmarks and ratings below DIR on one page."""
    from xstream.report.gathered import KINDS, gather, gathered_page
    from xstream.report.page import write

    require_package("plotly")
    target = out or folder / "report.html"
    if folder.is_dir():  # else `gathered_page` says what is wrong with it
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
