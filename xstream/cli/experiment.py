"""`xstream experiment`: experiments, their tables, their pages; this prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.console import Progress, check_output_directory, require_package, within

if TYPE_CHECKING:
    from xstream.bench.experiment import Scale

__all__ = ["experiment"]


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="table1, fig6, fig7, fig8, cache, all of them, or a folder of yours."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The full size, instead of one that takes a minute.")
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials of each point, in turns.", callback=within(1, 10_000)),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="About how long a trial takes.", callback=within(0.0001, 60)),
    ] = None,
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
    from xstream.bench.experiment import Scale, experiments, find_experiment
    from xstream.errors import InputError

    if name is None:
        _print_list({known: find_experiment(known).title for known in experiments()}, json)
        return
    if clock not in ("wall", "processor"):
        raise InputError(f"--clock is wall or processor, not {clock!r}")
    require_package("plotly")
    scale = Scale(
        full=full,
        trials=trials or (10 if full else 3),
        seconds=seconds or (0.2 if full else 0.02),
        clock=clock,
        peers=(full and clock == "wall") if peers is None else peers,
    )
    if name == "all":
        _run_all(scale, out, json)
        return
    found = _run_one(name, scale, out, quiet=json)
    if json:
        _print_json(found)


def _run_one(name: str, scale: Scale, out: Path, quiet: bool) -> dict[str, Any]:
    """Run an experiment, write what it finds, and print it unless told to be quiet."""
    from dataclasses import replace

    from xstream.bench.experiment import find_experiment, run_experiment

    chosen = find_experiment(name)
    check_output_directory(out / chosen.name)
    try:
        with Progress(chosen.name) as progress:
            outcome = run_experiment(chosen, replace(scale, progress=progress))
        found = outcome.to_json()
        files = _files(outcome, found)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{chosen.name} is not finished, so that nothing of it is written"
        ) from None
    written = _write(files, out / chosen.name)
    if not quiet:
        _print(found, written)
    return found


def _run_all(scale: Scale, out: Path, json: bool) -> None:
    """Run every experiment that can be run here; say which are left out, and why."""
    from xstream.bench.experiment import Unavailable, experiments, find_experiment

    done: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    names = list(experiments())
    for name in names:
        check_output_directory(out / find_experiment(name).name)
    try:
        for name in names:
            try:
                done.append(_run_one(name, scale, out, quiet=json))
            except Unavailable as why:
                left_out[name] = str(why)
    except KeyboardInterrupt as interrupt:
        finished = [found["experiment"] for found in done]
        for name in names:
            if name not in finished:
                left_out.setdefault(name, "interrupted")
        if json:
            _print_json([*done, *_left_out_rows(left_out)])
        kept = f"{', '.join(finished)}: finished, in {out}" if finished else "none is finished"
        raise KeyboardInterrupt(f"{interrupt or 'nothing more is written'}; {kept}") from None
    if json:
        _print_json([*done, *_left_out_rows(left_out)])
        return
    for name, reason in left_out.items():
        typer.echo(f"left out: {name} ({reason})")


def _left_out_rows(left_out: dict[str, str]) -> list[dict[str, str]]:
    return [{"experiment": name, "left_out": reason} for name, reason in left_out.items()]


def _files(outcome: Any, found: dict[str, Any]) -> dict[str, str]:
    import json

    from xstream.report.experiment_page import experiment_page, experiment_text

    return {
        "results.csv": outcome.to_csv(),
        "results.json": json.dumps({"outcome": found}),
        "page.md": experiment_text(found),
        "page.html": experiment_page(found),
    }


def _write(files: dict[str, str], folder: Path) -> list[Path]:
    from xstream.report.page import write

    for name, text in files.items():
        write(folder / name, text)
    return [folder / name for name in files]


def _print_json(found: Any) -> None:
    import json

    typer.echo(json.dumps(found, indent=2))


def _print_list(titles: dict[str, str], json: bool) -> None:
    if json:
        _print_json([{"experiment": name, "title": title} for name, title in titles.items()])
        return
    for name, title in titles.items():
        typer.echo(f"{name:10} {title}")


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
