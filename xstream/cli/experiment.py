"""`xstream experiment`: run experiments, write their pages and print their tables."""

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
        typer.Argument(
            help="table1, fig6, fig7, fig8, cache, all, or the folder of your own experiment."
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Run at full size; without it, an experiment takes about a minute."
        ),
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials per point; points take turns.", callback=within(1, 10_000)),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Approximate length of a trial.", callback=within(0.0001, 60)),
    ] = None,
    clock: Annotated[
        str,
        typer.Option(
            help="Clock of the measurement: wall, or processor (CPU time, for a busy machine)."
        ),
    ] = "wall",
    peers: Annotated[
        bool | None,
        typer.Option(help="table1: run installed peer engines too; the default with --full."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Directory for results, in a subdirectory NAME.")
    ] = Path("experiments"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run an experiment of the paper and write its trials (CSV), its page (HTML) and a summary."""
    from xstream.bench.experiment import Scale, experiments, find_experiment
    from xstream.errors import InputError

    if name is None:
        _print_list({known: find_experiment(known).title for known in experiments()}, json)
        return
    if clock not in ("wall", "processor"):
        raise InputError(f"--clock must be wall or processor, not {clock!r}")
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
    """Run an experiment, write its results, and print them unless `quiet`."""
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
            f"{chosen.name} was not finished; none of its results are written"
        ) from None
    written = _write(files, out / chosen.name)
    if not quiet:
        _print(found, written)
    return found


def _run_all(scale: Scale, out: Path, json: bool) -> None:
    """Run every experiment that can run on this machine; report the others with the reason."""
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
        kept = f"{', '.join(finished)}: finished, in {out}" if finished else "none was finished"
        raise KeyboardInterrupt(
            f"{interrupt or 'no further results are written'}; {kept}"
        ) from None
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
    print_table(console, ("figure", "value", "", "target", ""), figure_rows(found["figures"]))
    console.print(f"\n{found['text'].strip()}\n", soft_wrap=True, markup=False)
    console.print("written: " + ", ".join(map(str, written)), soft_wrap=True, markup=False)
