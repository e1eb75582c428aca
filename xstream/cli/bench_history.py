"""`xstream bench record` and `xstream bench compare`: benchmarks over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xstream.console import interrupted_with, within

if TYPE_CHECKING:
    from xstream.bench.history import Change, Record

__all__ = ["compare", "record"]

Only = Annotated[str, typer.Option(help="Benchmarks, for example passchain,elementwise.")]


def _names(only: str) -> list[str]:
    return [name.strip() for name in only.split(",") if name.strip()]


def _say(line: str) -> None:
    typer.echo(line, err=True)


def record(
    out: Annotated[Path, typer.Option(help="Directory for the record.")] = Path("bench/records"),
    rounds: Annotated[
        int, typer.Option(help="Rounds of all benchmarks.", callback=within(2, 1000))
    ] = 7,
    only: Only = "",
) -> None:
    """Measure this version and keep the results with commit, machine and load."""
    from xstream.bench import history
    from xstream.console import check_output_directory

    check_output_directory(out)
    with interrupted_with("no record was written"):
        path = history.write_record(out, history.record(rounds, _say, _names(only)))
    typer.echo(f"record: {path}")


def compare(
    a: Annotated[str, typer.Argument(help="A record, or a commit of the source tree.")],
    b: Annotated[str, typer.Argument(help="A second one of the same kind.")],
    rounds: Annotated[
        int, typer.Option(help="Rounds of each benchmark for commits.", callback=within(2, 1000))
    ] = 9,
    only: Only = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is slower in B than in A beyond the noise; the exit code is 1 if anything is.

    Commits are built beside each other and measured in turns. A rate counts as changed if the
    change is at least 2 % and the 95 % interval (Student's t, over the rounds) excludes none.
    Instructions, counted by callgrind, count from 1 % on.
    """
    from xstream.bench import history

    with interrupted_with("nothing was compared"):
        one, two, in_turns = _both(a, b, rounds, _names(only))
    changes = history.compare(one, two, in_turns)
    slower = [change for change in changes if change.verdict == "slower"]
    if json:
        import json as writer

        typer.echo(writer.dumps({"changes": [each.to_json() for each in changes]}, indent=2))
    else:
        for line in history.differing_machines(one, two):
            typer.echo(f"The machines differ: {line}")
        for change in changes:
            typer.echo(_line(change))
        typer.echo(_sentence(slower, changes))
    raise typer.Exit(1 if slower else 0)


def _both(a: str, b: str, rounds: int, only: list[str]) -> tuple[Record, Record, bool]:
    from xstream.bench.commits import commit_of, measure_commits
    from xstream.bench.history import read_record
    from xstream.errors import InputError

    files = [Path(name).is_file() for name in (a, b)]
    if all(files):
        return read_record(Path(a)), read_record(Path(b)), False
    if any(files):
        raise InputError("compare two records or two commits, not one of each")
    return (*measure_commits(commit_of(a), commit_of(b), rounds, only, _say), True)


def _line(change: Change) -> str:
    word = "longer" if change.slower >= 0 else "shorter"
    if change.unit == "instructions":
        return (
            f"{change.verdict:7} {change.name:14} {change.before:>16,.0f} -> "
            f"{change.after:>16,.0f} instructions ({change.slower:+.2%})"
        )
    return (
        f"{change.verdict:7} {change.name:14} {change.before / 1e6:>12,.1f} -> "
        f"{change.after / 1e6:>12,.1f} Msamples/s, takes {abs(change.slower):.1%} {word} "
        f"(95 % interval ±{change.half:.1%})"
    )


def _sentence(slower: list[Change], changes: list[Change]) -> str:
    if not changes:
        return "The records have no benchmark in common."
    if not slower:
        return "Nothing is slower beyond the noise."
    return f"Slower: {', '.join(f'{each.name} ({each.unit})' for each in slower)}."
