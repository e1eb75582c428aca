"""`xstream yabench limit`: the sustainable load of an engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from xstream import InputError
from xstream.console import Progress, check_output_directory, interrupted_with, within

__all__ = ["limit_command"]


def limit_command(
    tests: Annotated[Path, typer.Argument(help="A test file (TOML), or e1, e2, e3, e4.")],
    out: Annotated[Path, typer.Option(help="Folder of the results; finished runs are kept.")],
    engine: Annotated[str, typer.Option(help="The engine.")] = "xstream",
    test: Annotated[str | None, typer.Option(help="The test; default: the first.")] = None,
    start: Annotated[
        int, typer.Option(help="Stations to begin with.", callback=within(1, 10**7))
    ] = 100,
    most: Annotated[
        int, typer.Option(help="Most stations to try.", callback=within(1, 10**7))
    ] = 100_000,
    define: Annotated[
        list[str] | None, typer.Option("-D", help="key=value: a setting or variable; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find how many stations an engine holds: all windows right, each delay below one slide."""
    from yabench.experiments import test_file
    from yabench.limit import sustainable
    from yabench.testfile import read_tests

    chosen = read_tests(test_file(tests), [*(define or []), "runs=1"])
    found = [each for each in chosen if test in (None, each.name)]
    if not found:
        raise InputError(f"{tests} has no test {test!r}")
    check_output_directory(out)
    with interrupted_with(f"finished runs are in {out}"), Progress("limit") as progress:
        tries = sustainable(replace(found[0], engines=(engine,)), out, start, most, progress)
    held = max((stations for stations, right in tries.items() if right), default=0)
    if as_json:
        typer.echo(json.dumps({"engine": engine, "stations": held, "tried": tries}))
        return
    for stations, right in sorted(tries.items()):
        typer.echo(f"{stations:>10,} stations: {'held' if right else 'not held'}")
    typer.echo(f"{engine} holds {held:,} stations.")
