"""`xstream experiment`: one experiment, its table, its page; this prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["experiment"]


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="table1, fig6, fig7, fig8, cache, all of them, or a folder of yours."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The full size, instead of one that takes a minute.")
    ] = False,
    trials: Annotated[int | None, typer.Option(help="Trials of each point, in turns.")] = None,
    seconds: Annotated[float | None, typer.Option(help="About how long a trial takes.")] = None,
    clock: Annotated[
        str, typer.Option(help="wall, or processor: the time that a busy machine leaves us.")
    ] = "wall",
    peers: Annotated[
        bool | None,
        typer.Option(help="table1: other engines that are installed; as a rule at full size only."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for results; NAME is added.")] = Path(
        "experiments"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run an experiment of the paper: a CSV file of every trial, a page with plots, and text."""
    from xstream.bench.experiment import Scale, experiments, find_experiment, run_experiment
    from xstream.errors import InputError

    if name is None:
        for known in experiments():
            typer.echo(f"{known:10} {find_experiment(known).title}")
        return
    if clock not in ("wall", "processor"):
        raise InputError(f"--clock is wall or processor, not {clock!r}")
    if (trials is not None and trials < 1) or (seconds is not None and seconds <= 0):
        raise InputError("--trials is at least 1 and --seconds is a positive number")
    scale = Scale(
        full=full,
        trials=trials or (10 if full else 3),
        seconds=seconds or (0.2 if full else 0.02),
        clock=clock,
        peers=(full and clock == "wall") if peers is None else peers,
    )
    every = []
    for one in experiments() if name == "all" else (name,):
        chosen = find_experiment(one)
        outcome = run_experiment(chosen, scale, None if json else _Progress())
        every.append(outcome.to_json())
        written = _write(outcome, every[-1], out / chosen.name)
        if not json:
            _print(every[-1], written)
    if json:
        import json as writer

        typer.echo(writer.dumps(every if name == "all" else every[0], indent=2))


class _Progress:
    """A dot for each trial, on a terminal only."""

    def __init__(self) -> None:
        import sys

        self.shown = sys.stderr.isatty()

    def __call__(self, row: dict[str, Any]) -> None:
        if self.shown:
            typer.echo(".", err=True, nl=False)


def _write(outcome: Any, found: dict[str, Any], folder: Path) -> list[Path]:
    import json

    from xstream.report.experiment_page import experiment_page, experiment_text
    from xstream.report.page import write

    files = {
        "results.csv": outcome.to_csv(),
        "results.json": json.dumps({"outcome": found}),
        "page.md": experiment_text(found),
        "page.html": experiment_page(found),
    }
    for name, text in files.items():
        write(folder / name, text)
    return [folder / name for name in files]


def _print(found: dict[str, Any], written: list[Path]) -> None:
    from rich.console import Console

    from xstream.cli._tables import print_table
    from xstream.report.experiment_page import figure_rows, subtitle
    from xstream.report.page import machine_line

    console = Console(highlight=False)
    how = f"{subtitle(found)}\n{machine_line(found['machine'])}"
    console.print(f"{found['title']}\n{how}\n", soft_wrap=True, markup=False)
    print_table(console, found["table"]["columns"], found["table"]["rows"])
    console.print()
    print_table(console, ("figure", "value", "", "asked", ""), figure_rows(found["figures"]))
    console.print(f"\n{found['text'].strip()}\n", soft_wrap=True, markup=False)
    console.print("written: " + ", ".join(map(str, written)), soft_wrap=True, markup=False)
