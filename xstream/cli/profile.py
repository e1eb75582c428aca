"""`xstream profile`: run a query under several memory managers, schedulers and burst sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
from xstream.console.groups import grouped

if TYPE_CHECKING:
    from xstream.bench.profile import Comparison, Variant
    from xstream.query import Query

__all__ = ["profile"]


@dataclass(frozen=True)
class Subject:
    """The query to profile."""

    subject: Annotated[
        str,
        typer.Argument(
            metavar="APP_OR_SCRIPT", help="An application, or a Python file that runs a query."
        ),
    ]
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script, after --.")
    ] = None
    window: Annotated[
        int, typer.Option(help="Applications: samples per segment.", callback=within(1, 2**20))
    ] = 4096
    seconds: Annotated[
        float,
        typer.Option(
            help="Applications: approximate length of a run.", callback=within(0.0001, 60)
        ),
    ] = 0.1
    query: Annotated[
        int,
        typer.Option(
            help="Scripts: the number of the query to profile, in the order in which they run.",
            callback=within(1, 1_000_000),
        ),
    ] = 1


@dataclass(frozen=True)
class Variants:
    """The ways in which it runs."""

    memory: Annotated[str, typer.Option(help="Memory managers, separated by commas, or all.")] = (
        "all"
    )
    scheduler: Annotated[str, typer.Option(help="Schedulers, separated by commas, or all.")] = "df"
    batch: Annotated[
        str, typer.Option(help="Values of tuple_burst, separated by commas; none means no limit.")
    ] = "64"
    trials: Annotated[
        int,
        typer.Option(
            help="Runs of each variant without profiling; variants take turns.",
            callback=within(1, 10_000),
        ),
    ] = 3
    clock: Annotated[
        str,
        typer.Option(
            help="Clock of the measurement: wall, or processor (CPU time, for a busy machine)."
        ),
    ] = "wall"


Html = Annotated[Path | None, typer.Option(help="Write an HTML page with plots to this file.")]
Out = Annotated[
    Path | None, typer.Option(help="Write the JSON to this file, for `xstream report`.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@grouped
def profile(
    subject: Subject, variants: Variants, html: Html = None, out: Out = None, json: Json = False
) -> None:
    """Profile a query: throughput, copies and their causes, memory and time of every variant."""
    from xstream.errors import InputError

    if html is not None:
        require_package("plotly")
    for path in filter(None, (html, out)):
        check_output_file(path)
    if variants.clock not in ("wall", "processor"):
        raise InputError(f"--clock must be wall or processor, not {variants.clock!r}")
    comparison = _compare(subject, variants)
    _write(comparison, html, out)
    if json:
        import json as writer

        typer.echo(writer.dumps(comparison.to_json(), indent=2))
    else:
        _print(comparison, html)


def _compare(given: Subject, how: Variants) -> Comparison:
    from xstream.bench.profile import compare, variants
    from xstream.bench.subjects import application, script_query

    chosen = variants(how.memory, how.scheduler, how.batch)
    with (
        interrupted_with("the profile was not finished; nothing is shown or written"),
        Progress("profile", unit="preparation") as progress,
    ):
        path = Path(given.subject)
        if given.subject.endswith(".py") or path.is_file():
            found = script_query(path, given.arguments or [], given.query)
            return _compare_script(path, found, chosen, how.trials, how.clock, progress)
        declare = application(given.subject, given.window, given.seconds, progress)
        return compare(declare, chosen, how.trials, how.clock, progress)


def _compare_script(
    path: Path,
    query: Query,
    chosen: Iterable[Variant],
    trials: int,
    clock: str,
    progress: Progress,
) -> Comparison:
    """Profile the query of a script; an error of its operators names the line of the script."""
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
    console.print("\nwhich operators cause the copies")
    print_table(console, ("variant", "operator", "copied", "of all", "reason"), rows)
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
