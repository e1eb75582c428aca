"""`xstream linearroad rate`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearroad.options import path_option
from linearroad.storage import check_writable, is_remote, place
from xstream.console import (
    interrupted_with,
    require_package,
    within,
)
from xstream.console.groups import grouped
from xstream.errors import InputError

if TYPE_CHECKING:
    from linearroad.rating.job import Rating
    from linearroad.rating.memory import Account
    from linearroad.rating.options import RatingOptions

__all__ = ["rate_command"]

GIB = 2**30
_AGAIN = "finished steps are kept; run the same command again to continue"
MOST = 10**9  # expressways; more than fit into any memory


def _option(help: str, *names: str, between: tuple[float, float] | None = None) -> Any:
    return typer.Option(*names, help=help, callback=None if between is None else within(*between))


@dataclass(frozen=True)
class Folders:
    """What is read and written."""

    base: Annotated[
        Path,
        path_option("Directory created by `generate --expressways 10 --history`; --strict may "
                    "create it."),
    ]  # fmt: skip
    out: Annotated[Path, path_option("Output directory for the rating and its runs.")] = Path(
        "rating"
    )
    validated: Annotated[
        Path | None,
        path_option("Validated answers of the base; default: OUT/originals, created if missing."),
    ] = None
    resume: Annotated[
        bool,
        _option("Go on with the rating in --out, after the last of its steps that was complete.",
                "--resume"),
    ] = False  # fmt: skip


@dataclass(frozen=True)
class Search:
    """The values of L to try."""

    first: Annotated[
        float | None, _option("The first L to try.", "--from", between=(0.5, MOST))
    ] = None
    last: Annotated[
        float | None,
        _option("The largest L to try; default: as many as memory allows.", "--to",
                between=(0.5, MOST)),
    ] = None  # fmt: skip
    quick: Annotated[
        bool,
        _option("Use short probe runs only; with --strict: a cut of ten rush-hour minutes.",
                "--quick"),
    ] = False  # fmt: skip
    explain: Annotated[
        float | None,
        _option("Only estimate the memory for this many expressways.", between=(0.5, MOST)),
    ] = None


@dataclass(frozen=True)
class Strictness:
    """Whether expressways are copied."""

    strict: Annotated[
        bool,
        _option("No copies: rate the expressways of the base, and validate every answer.",
                "--strict"),
    ] = False  # fmt: skip
    expressways: Annotated[
        float | None,
        _option("With --strict: generate this many expressways, if --base is missing or "
                "incomplete.", between=(0.5, MOST)),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class Pace:
    """How fast the stream runs, and on what."""

    speed: Annotated[
        float | None,
        _option("How many times faster than real time; default: 10, with --strict 1.",
                between=(0.01, 1e9)),
    ] = None  # fmt: skip
    threads: Annotated[
        int,
        _option("Number of threads, at most one per core.", "--threads", "--workers",
                between=(1, 1024)),
    ] = 2  # fmt: skip
    master: Annotated[
        str | None,
        _option("Rate this Spark cluster: L is divided evenly over its slots, which start "
                "together."),
    ] = None  # fmt: skip


@grouped
def rate_command(
    folders: Folders,
    search: Search,
    strictness: Strictness,
    pace: Pace,
    json: Annotated[bool, _option("Print rating.json to standard output.", "--json")] = False,
) -> None:
    """Find the largest L that this machine answers, rightly and in time; exit 1 if none.

    With --master, the largest L of a cluster.
    """
    from linearroad.rating.job import explain as explained
    from linearroad.rating.job import rate
    from linearroad.rating.strict import rate_strictly

    strict, out = strictness.strict, folders.out
    _check_strict(strictness, folders, search, pace)
    if search.explain is not None:
        _show_account(search.explain, *explained(folders.base, search.explain), json)
        return
    require_package("plotly")
    options = _options(folders, search, strictness, pace)
    check_writable(options.out)
    job = rate_strictly if strict else rate
    try:
        with interrupted_with(_AGAIN if strict else "no L has been tried"):
            rating = job(options, lambda sentence: print(sentence, file=sys.stderr, flush=True))
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from error
    page = rating.write()
    if json:
        typer.echo(json_module.dumps({"rating": rating.as_dict()}, indent=1))
    else:
        _show(rating, page)
    if rating.interrupted:
        raise KeyboardInterrupt(f"{rating.sentence().removeprefix('interrupted: ')}; see {page}")
    if not rating.expressways:
        raise typer.Exit(1)


def _options(folders: Folders, search: Search, strictness: Strictness, pace: Pace) -> RatingOptions:
    """The options as the job takes them."""
    from linearroad.rating.options import RatingOptions

    base, out, validated = folders.base, folders.out, folders.validated
    if pace.master is not None:  # its tasks have other working directories
        base, out = place(base), place(out)
        validated = None if validated is None else place(validated)
    elif any(map(is_remote, (base, out, *([validated] if validated else [])))):
        raise InputError("a rating of this machine needs folders: use --master, or no URIs")
    usual = 1.0 if strictness.strict else 10.0
    return RatingOptions(
        base, out, search.first, search.last, usual if pace.speed is None else pace.speed,
        pace.threads, search.quick, validated, pace.master, folders.resume, strictness.strict,
        strictness.expressways,
    )  # fmt: skip


def _check_strict(strictness: Strictness, folders: Folders, search: Search, pace: Pace) -> None:
    """Refuse options that have no meaning for the kind of rating."""
    if not strictness.strict:
        if strictness.expressways is not None:
            raise InputError("--expressways requires --strict; the largest L to try is --to")
        return
    others = {
        "--from": search.first, "--to": search.last, "--explain": search.explain,
        "--validated": folders.validated, "--master": pace.master,
    }  # fmt: skip
    for name, value in others.items():
        if value is not None:
            raise InputError(f"{name} cannot be used with --strict, which rates the L of the base")


def _show(rating: Rating, page: Path) -> None:
    """Print the steps, with worst response times as in the paper's Table 8, and the rating."""
    from rich.console import Console
    from rich.table import Table

    from linearroad.rating.steps import l_text

    table = Table(title="worst response times, in stream seconds")
    names = ("toll notifications", "balances", "expenditures", "travel times")
    for heading in ("L", "minutes", "toll", "balance", "spent", "travel", "GiB", "CPU", ""):
        table.add_column(heading, justify="right" if heading != "" else "left", no_wrap=True)
    cores = rating.machine["cores"] or 1
    for step in rating.steps:
        worst = [
            f"{step.response_s[name]['worst']:.3f}" if name in step.response_s else "-"
            for name in names
        ]
        busy = step.cpu_s / step.wall_s / cores if step.wall_s else 0.0
        table.add_row(
            l_text(step.rated), f"{step.from_minute}-{step.to_minute}", *worst,
            f"{step.peak_memory_bytes / GIB:.1f}", f"{busy:.0%}",
            "passed" if step.passed else "failed",
        )  # fmt: skip
    console = Console()
    console.print(table)
    for step in rating.steps:
        if not step.passed:
            console.print(step.line(), soft_wrap=True)
    console.print(f"\n[bold]{rating.sentence()}[/bold]", soft_wrap=True)
    console.print(_basis(rating), soft_wrap=True)
    console.print(f"page: {page}", soft_wrap=True)


def _basis(rating: Rating) -> str:
    """What the rating is based on, in one line."""
    verdict = rating.verdict or "not validated"
    if not rating.options.strict:
        return (
            f"{rating.generated} generated expressways, copied with vehicles of their own; history "
            f"shared; originals' answers: {verdict}"
        )
    names = {"generation_s": "generated", "run_s": "run", "validation_s": "validated"}
    costs = [f"{names[name]} in {rating.costs[name]:,.0f} s" for name in names
             if name in rating.costs]  # fmt: skip
    return ", ".join([
        f"{rating.generated} expressways generated apart, each with its history", *costs,
    ]) + f"; all answers: {verdict}"  # fmt: skip


def _show_account(asked: float, account: Account, most: float, as_json: bool) -> None:
    """Print the estimated memory at an L, by purpose."""
    from linearroad.rating.steps import l_text
    from xstream.console.memory import available_bytes

    free = available_bytes()
    if as_json:
        known = {
            "expressways": asked,
            "vehicles_seen": account.vehicles,
            "vehicles_on_the_road": account.on_the_road,
            "bytes": {name: round(total) for name, _, total in account.lines},
            "total_bytes": round(account.total),
            "free_bytes": free,
            "largest_that_fits": most,
        }
        typer.echo(json_module.dumps(known, indent=1))
        return
    typer.echo(
        f"L = {l_text(asked)}: {account.vehicles:,} vehicles seen, at most "
        f"{account.on_the_road:,} on the road at once"
    )
    for name, each, total in account.lines:
        share = _by_vehicle(name, total, account)
        typer.echo(
            f"  {name:<46}{each / 2**10:>10,.0f} KiB per expressway{total / GIB:>8.2f} GiB{share}"
        )
    typer.echo(f"  {'in all':<46}{'':>28}{account.total / GIB:>8.2f} GiB")
    verb = "fits" if asked <= most else "does NOT fit"
    typer.echo(
        f"{free / GIB:.2f} GiB are free: it {verb}; the largest L that fits is {l_text(most)}"
    )


def _by_vehicle(name: str, total: float, account: Account) -> str:
    if name.startswith("vehicles on the road"):
        return f"  {total / account.on_the_road:.1f} bytes per vehicle on the road"
    if name.startswith("accounts"):
        return f"  {total / account.vehicles:.1f} bytes per vehicle seen"
    return ""
