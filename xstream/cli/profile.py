"""`xstream profile`: a query under every memory manager, scheduler and batch; this prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xstream.console import (
    Progress,
    check_output_file,
    interrupted_with,
    require_package,
    within,
)

if TYPE_CHECKING:
    from xstream.bench.profile import Comparison, Variant
    from xstream.query import Query

__all__ = ["profile"]


def profile(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="APP_OR_SCRIPT", help="An application, or a Python file that runs a query."
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The script's own arguments, behind --.")
    ] = None,
    memory: Annotated[
        str, typer.Option(help="Memory managers, separated by commas, or all.")
    ] = "all",
    scheduler: Annotated[str, typer.Option(help="Schedulers, separated by commas, or all.")] = "df",
    batch: Annotated[
        str,
        typer.Option(help="Tuples that a source lets in at a time, separated by commas, or none."),
    ] = "64",
    window: Annotated[
        int, typer.Option(help="Applications: samples in a segment.", callback=within(1, 2**20))
    ] = 4096,
    seconds: Annotated[
        float,
        typer.Option(help="Applications: about how long a run is.", callback=within(0.0001, 60)),
    ] = 0.1,
    query: Annotated[
        int,
        typer.Option(help="Scripts: which of the queries it runs.", callback=within(1, 1_000_000)),
    ] = 1,
    trials: Annotated[
        int,
        typer.Option(help="Plain runs of each variant, in turns.", callback=within(1, 10_000)),
    ] = 3,
    clock: Annotated[
        str, typer.Option(help="wall, or processor: the time that a busy machine leaves us.")
    ] = "wall",
    html: Annotated[Path | None, typer.Option(help="Write a page with plots here.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the JSON here as well, for `xstream report`.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a query under every variant: throughput, copies and who causes them, memory, time."""
    from xstream.bench.profile import compare, variants
    from xstream.bench.subjects import application, script_query
    from xstream.errors import InputError

    if html is not None:
        require_package("plotly")
    for path in filter(None, (html, out)):
        check_output_file(path)
    if clock not in ("wall", "processor"):
        raise InputError(f"--clock is wall or processor, not {clock!r}")
    chosen = variants(memory, scheduler, batch)
    with (
        interrupted_with("the profile is not finished, so that nothing is shown or written"),
        Progress("profile", unit="preparation") as progress,
    ):
        if subject.endswith(".py") or Path(subject).is_file():
            found = script_query(Path(subject), arguments or [], query)
            comparison = _compare_script(Path(subject), found, chosen, trials, clock, progress)
        else:
            declare = application(subject, window, seconds, progress)
            comparison = compare(declare, chosen, trials, clock, progress)
    _write(comparison, html, out)
    if json:
        import json as writer

        typer.echo(writer.dumps(comparison.to_json(), indent=2))
    else:
        _print(comparison, html)


def _compare_script(
    path: Path,
    query: Query,
    chosen: Iterable[Variant],
    trials: int,
    clock: str,
    progress: Progress,
) -> Comparison:
    """A script's query; where an operator of the script's fails, its line is named."""
    from xstream.bench.profile import compare
    from xstream.bench.subjects import line_that_failed
    from xstream.errors import InputError, XStreamError

    try:
        return compare(lambda: query, chosen, trials, clock, progress)
    except XStreamError as error:
        where = line_that_failed(path, error)
        if where is None:
            raise
        raise InputError(f"{where}: {error}") from error


def _write(comparison: Comparison, html: Path | None, out: Path | None) -> None:
    from xstream.report.page import write

    if html is not None:
        from xstream.report.profile_page import profile_page

        write(html, profile_page(comparison.to_json()))
    if out is not None:
        import json

        write(out, json.dumps({"profile": comparison.to_json()}))


def _print(comparison: Comparison, html: Path | None) -> None:
    from rich.console import Console

    from xstream.cli._tables import print_table
    from xstream.report.page import machine_line
    from xstream.report.profile_page import OVERVIEW, copy_rows, overview_rows, size

    console = Console(highlight=False)
    found = comparison.to_json()
    print_table(console, (comparison.query, *OVERVIEW[1:]), overview_rows(found))
    rows = [
        (profile.variant.name, *row)
        for profile, plain in zip(comparison.profiles, found["profiles"], strict=True)
        for row in copy_rows(plain)[:4]
    ]
    console.print("\nwho causes the copies")
    print_table(console, ("variant", "operator", "copied", "of all", "why"), rows)
    still = [
        profile.variant.name for profile in comparison.profiles if not profile.memory.bytes_copied
    ]
    if still:
        console.print(f"nothing is copied under {'; '.join(still)}", soft_wrap=True)
    queues = max(profile.queue_bytes_peak for profile in comparison.profiles)
    console.print(
        f"queues took at most {size(queues)}; {machine_line(comparison.machine)}", soft_wrap=True
    )
    if html is not None:
        console.print(f"page: {html}", soft_wrap=True)
