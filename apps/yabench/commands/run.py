"""`xstream yabench run`, `report` and `generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from xstream import InputError
from xstream.console import (
    Progress,
    check_output_directory,
    check_output_file,
    interrupted_with,
    require_package,
    whole_file,
    within,
)

__all__ = ["generate_command", "report_command", "run_command"]


def run_command(
    tests: Annotated[Path, typer.Argument(help="A test file (TOML), or e1, e2, e3, e4.")],
    out: Annotated[Path, typer.Option(help="Folder of the results; finished runs are kept.")],
    define: Annotated[
        list[str] | None, typer.Option("-D", help="key=value: a setting or variable; repeatable.")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Run only the test with this name; repeatable.")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="How many times faster than real time items are fed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run all tests of a file on their engines, and judge every result.

    A second run into the same folder runs only what is missing.
    """
    from yabench.benchmark import run_tests
    from yabench.experiments import test_file
    from yabench.testfile import read_tests

    settings = [*(define or []), *([] if speed is None else [f"speed={speed}"])]
    chosen = read_tests(test_file(tests), settings)
    names = {each.name for each in chosen}
    for name in test or []:
        if name not in names:
            raise InputError(f"{tests} has no test {name!r}: it has {', '.join(sorted(names))}")
    chosen = [each for each in chosen if not test or each.name in test]
    check_output_directory(out)
    with (
        interrupted_with(f"finished runs are in {out}; the same command continues"),
        Progress("yabench") as progress,
    ):
        found = run_tests(chosen, out, progress)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    for each in found:
        typer.echo(_line(each))


def _line(found: dict[str, Any]) -> str:
    name = f"{found['test']}, {found['engine']}, run {found['run']}"
    if found["missing"]:
        return f"{name}: {found['failure']}"
    strict = found["judged"]["strict"]
    delays = [w["delay_ms"] for w in strict["windows"] if w["delay_ms"] is not None]
    delay = f" Delay at most {max(delays):.0f} ms." if delays else ""
    gracious = found["judged"].get("gracious")
    more = f" Gracious: {gracious['finding']}" if gracious else ""
    failure = f" {found['failure']}." if found["failure"] else ""
    return f"{name}: {strict['finding']}{delay}{more}{failure}"


def report_command(
    directory: Annotated[Path, typer.Argument(help="A folder written by `run`.")],
    html: Annotated[
        Path | None, typer.Option(help="The page to write; default: DIRECTORY/report.html.")
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="YABench's published results (.tar.xz), drawn as reference lines."),
    ] = None,
) -> None:
    """Write one page with all tests of a benchmark, engines side by side."""
    require_package("plotly")
    from yabench.benchmark import outcomes
    from yabench.page import write_page

    page = html or directory / "report.html"
    check_output_file(page)
    write_page(page, directory.name, outcomes(directory), published)
    typer.echo(f"report: {page}")


def generate_command(
    out: Annotated[Path, typer.Option(help="File to write: .n3t[.xz], .jsonl, .arrow, .parquet.")],
    stations: Annotated[int, typer.Option(callback=within(1, 10_000_000))] = 50,
    interval_s: Annotated[float, typer.Option(help="Time between reports of a station.")] = 1.0,
    duration_s: Annotated[float, typer.Option(help="Length of the stream.")] = 30.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
) -> None:
    """Generate a weather stream, as RDF or as records."""
    from yabench.files import write_stream
    from yabench.weather import generate

    check_output_file(out)
    with interrupted_with("nothing was written"):
        records = generate(stations, round(interval_s * 1000), round(duration_s * 1000), seed)
        with whole_file(out) as part:
            write_stream(records, out, part)
    typer.echo(f"{out}: {len(records):,} observations of {stations:,} stations")
