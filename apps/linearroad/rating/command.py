"""`xstream linearroad rate`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearroad.storage import check_writable, is_remote, place, typed
from xstream.console import (
    interrupted_with,
    require_package,
    within,
)
from xstream.errors import InputError

if TYPE_CHECKING:
    from linearroad.rating.job import Rating
    from linearroad.rating.memory import Account

__all__ = ["rate_command"]

GIB = 2**30
_AGAIN = "finished steps are kept; run the same command again to continue"
MOST = 10**9  # expressways; more than fit into any memory


def _option(help: str, *names: str, between: tuple[float, float] | None = None) -> Any:
    return typer.Option(*names, help=help, callback=None if between is None else within(*between))


def _path(help: str) -> Any:
    return typer.Option(help=help, parser=typed, metavar="PATH")


_BASE = "Directory created by `generate --expressways 10 --history`; --strict may create it."
Base = Annotated[Path, _path(_BASE)]
Out = Annotated[Path, _path("Output directory for the rating and its runs.")]
First = Annotated[float | None, _option("The first L to try.", "--from", between=(0.5, MOST))]
_LAST = "The largest L to try; default: as many as memory allows."
Last = Annotated[float | None, _option(_LAST, "--to", between=(0.5, MOST))]
_SPEED = "How many times faster than real time; default: 10, with --strict 1."
Speed = Annotated[float | None, _option(_SPEED, between=(0.01, 1e9))]
_THREADS = "Number of threads, at most one per core."
Threads = Annotated[int, _option(_THREADS, "--threads", "--workers", between=(1, 1024))]
_QUICK = "Use short probe runs only; with --strict: a cut of ten rush-hour minutes."
Quick = Annotated[bool, _option(_QUICK, "--quick")]
_STRICT = "No copies: rate the expressways of the base, and validate every answer."
Strict = Annotated[bool, _option(_STRICT, "--strict")]
_EXPRESSWAYS = "With --strict: generate this many expressways, if --base is missing or incomplete."
Expressways = Annotated[float | None, _option(_EXPRESSWAYS, between=(0.5, MOST))]
_EXPLAIN = "Only estimate the memory for this many expressways."
Explain = Annotated[float | None, _option(_EXPLAIN, between=(0.5, MOST))]
_VALIDATED = "Validated answers of the base; default: OUT/originals, created if missing."
Validated = Annotated[Path | None, _path(_VALIDATED)]
_MASTER = "Rate this Spark cluster: L is divided evenly over its slots, which start together."
Master = Annotated[str | None, _option(_MASTER)]
_RESUME = "Go on with the rating in --out, after the last of its steps that was complete."
Resume = Annotated[bool, _option(_RESUME, "--resume")]
Json = Annotated[bool, _option("Print rating.json to standard output.", "--json")]


def rate_command(
    base: Base,
    out: Out = Path("rating"),
    first: First = None,
    last: Last = None,
    speed: Speed = None,
    threads: Threads = 2,
    quick: Quick = False,
    strict: Strict = False,
    expressways: Expressways = None,
    explain: Explain = None,
    validated: Validated = None,
    master: Master = None,
    resume: Resume = False,
    json: Json = False,
) -> None:
    """Find the largest L that this machine answers, rightly and in time; exit 1 if none.

    With --master, the largest L of a cluster.
    """
    from linearroad.rating.job import RatingOptions, rate
    from linearroad.rating.job import explain as explained
    from linearroad.rating.strict import rate_strictly

    others = {"--from": first, "--to": last, "--explain": explain,
              "--validated": validated, "--master": master}  # fmt: skip
    _check_strict(strict, expressways, others)
    if explain is not None:
        _show_account(explain, *explained(base, explain), json)
        return
    require_package("plotly")
    if master is None and any(map(is_remote, (base, out, *([validated] if validated else [])))):
        raise InputError("a rating of this machine needs folders: use --master, or no URIs")
    if master is not None:  # its tasks have other working directories
        base, out = place(base), place(out)
        validated = None if validated is None else place(validated)
    check_writable(out)
    pace = speed if speed is not None else 1.0 if strict else 10.0
    options = RatingOptions(
        base, out, first, last, pace, threads, quick, validated, master, resume, strict, expressways
    )
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


def _check_strict(strict: bool, expressways: float | None, others: dict[str, Any]) -> None:
    """Refuse options that have no meaning for the kind of rating."""
    if not strict:
        if expressways is not None:
            raise InputError("--expressways requires --strict; the largest L to try is --to")
        return
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
