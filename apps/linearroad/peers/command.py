"""`xstream linearroad compare`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.console import check_output_directory, interrupted_with, require_package, within
from xstream.console.groups import grouped
from xstream.errors import InputError

if TYPE_CHECKING:
    from linearroad.peers.job import Comparison

__all__ = ["compare_command"]

MOST = 10**6  # expressways


def _option(help: str, *names: str, between: tuple[float, float] | None = None) -> Any:
    return typer.Option(*names, help=help, callback=None if between is None else within(*between))


@dataclass(frozen=True)
class Probes:
    """The rows of the probes, and how fast they are sent."""

    base: Annotated[
        Path, _option("Directory created by `generate --expressways 10 --history`.")
    ] = Path("base")
    minutes: Annotated[
        int,
        _option(
            "Minutes of a probe; those of the rush hour are the last ones of the base.",
            between=(1, 10_000),
        ),
    ] = 10
    screen_minutes: Annotated[
        int,
        _option(
            "Minutes of short probes, the last ones, that find out where to begin with whole "
            "probes; 0: none.",
            between=(0, 10_000),
        ),
    ] = 2
    from_minute: Annotated[
        int | None,
        _option(
            "The minute of the base where probes begin; default: so that they end with it.",
            between=(0, 10_000),
        ),
    ] = None
    first: Annotated[
        float | None,
        _option(
            "The first L to try with every system; default: one for each system.",
            "--from",
            between=(0.5, MOST),
        ),
    ] = None
    last: Annotated[float, _option("The largest L to try.", "--to", between=(0.5, MOST))] = 1000.0
    speed: Annotated[
        float, _option("How many times faster than real time.", between=(0.01, 1e3))
    ] = 1.0  # fmt: skip


Systems = Annotated[str, _option("all, or names separated by commas; see --list.")]
Out = Annotated[Path, _option("Output directory for the comparison and its probes.")]
Resume = Annotated[
    bool,
    _option("Go on with the comparison in --out: keep its systems, and repeat no probe that has "
            "ended.", "--resume"),
]  # fmt: skip
_VALIDATION = "Whether Spark validates the answers that those of the systems are compared with."
Validation = Annotated[bool, _option(_VALIDATION, "--validation/--no-validation")]
List = Annotated[
    bool, _option("Only list the systems, and what each of them lacks on this machine.", "--list")
]
Json = Annotated[bool, _option("Print comparison.json to standard output.", "--json")]


@grouped
def compare_command(
    probes: Probes,
    systems: Systems = "all",
    out: Out = Path("comparison"),
    validation: Validation = True,
    resume: Resume = False,
    list_: List = False,
    json: Json = False,
) -> None:
    """Find the largest L of several systems on this machine, one after the other."""
    from linearroad.peers.job import CompareOptions, compare
    from linearroad.peers.registry import systems_named

    chosen = systems_named(systems)
    if list_:
        for system in chosen:
            typer.echo(f"{system.name:<20}{system.title:<44}{system.missing() or 'found'}")
        return
    require_package("plotly")
    check_output_directory(out)
    options = CompareOptions(
        probes.base, out, tuple(chosen), probes.minutes, probes.from_minute, probes.first,
        probes.last, probes.speed, validation, probes.screen_minutes, resume,
    )  # fmt: skip
    try:
        with interrupted_with("no L has been tried"):
            found = compare(options, lambda line: print(line, file=sys.stderr, flush=True))
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from error
    page = found.write()
    if json:
        typer.echo(json_module.dumps({"comparison": found.as_dict()}, indent=1))
    else:
        _show(found, page)
    if found.interrupted:
        raise KeyboardInterrupt(f"{found.sentence().removeprefix('interrupted: ')}; see {page}")
    if not any(result.rated for result in found.results):
        raise typer.Exit(1)


def _show(found: Comparison, page: Path) -> None:
    """Print a table of the systems."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"probes of {found.options.minutes} minutes")
    for heading in ("system", "L", "worst s", "CPU", "MiB", "start s", "leaves out", ""):
        table.add_column(heading, justify="right" if heading in ("L", "MiB") else "left")
    for result in sorted(found.results, key=lambda each: -each.rated):
        best, figures = result.best, ["-"] * 4
        if best is not None:
            busy = best.cpu_s / best.wall_s if best.wall_s else 0.0
            memory = f"{best.peak_memory_bytes / 2**20:,.0f}"
            figures = [f"{best.worst_s:.3f}", f"{busy:.2f}", memory, f"{best.start_s:.1f}"]
        said = result.missing or result.verdict or ""
        rated = f"{result.rated:g}" if result.rated else "-"
        table.add_row(result.system.name, rated, *figures, result.leaves_out, said)
    console = Console()
    console.print(table)
    console.print(f"[bold]{found.sentence()}[/bold]", soft_wrap=True)
    console.print(f"page: {page}", soft_wrap=True)
