"""`xstream experiment`: run experiments, write their pages and print their tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.console import Progress, check_output_directory, require_package, within
from xstream.console.groups import grouped

if TYPE_CHECKING:
    from xstream.bench.experiment import Scale

__all__ = ["experiment"]


@dataclass(frozen=True)
class Size:
    """How long an experiment measures, and by which clock."""

    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Run at full size; without it, an experiment takes about a minute."
        ),
    ] = False
    trials: Annotated[
        int | None,
        typer.Option(help="Trials per point; points take turns.", callback=within(1, 10_000)),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(help="Approximate length of a trial.", callback=within(0.0001, 60)),
    ] = None
    clock: Annotated[
        str,
        typer.Option(
            help="Clock of the measurement: wall, or processor (CPU time, for a busy machine)."
        ),
    ] = "wall"
    peers: Annotated[
        bool | None,
        typer.Option(help="table1: run installed peer engines too; the default with --full."),
    ] = None

    def scale(self) -> Scale:
        """What the experiment is given."""
        from xstream.bench.experiment import Scale
        from xstream.errors import InputError

        if self.clock not in ("wall", "processor"):
            raise InputError(f"--clock must be wall or processor, not {self.clock!r}")
        return Scale(
            full=self.full,
            trials=self.trials or (10 if self.full else 3),
            seconds=self.seconds or (0.2 if self.full else 0.02),
            clock=self.clock,
            peers=(self.full and self.clock == "wall") if self.peers is None else self.peers,
        )


_NAME = "A name (none lists them), all, or the folder of your own experiment."
Name = Annotated[str | None, typer.Argument(help=_NAME)]
Out = Annotated[Path, typer.Option(help="Directory for results, in a subdirectory NAME.")]
_RESUME = "Continue an interrupted run of the same commit."
Resume = Annotated[bool, typer.Option("--resume", help=_RESUME)]
_STORE = "Put results.csv and page.md beside the experiment, to be committed."
Store = Annotated[bool, typer.Option("--store", help=_STORE)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@grouped
def experiment(
    size: Size,
    name: Name = None,
    out: Out = Path("experiments"),
    resume: Resume = False,
    store: Store = False,
    json: Json = False,
) -> None:
    """Run an experiment of the paper and write its trials (CSV), its page (HTML) and a summary."""
    from xstream.bench.experiment import experiments, find_experiment
    from xstream.bench.results import check_store

    if name is None:
        _print_list({known: find_experiment(known).title for known in experiments()}, json)
        return
    scale = size.scale()
    require_package("plotly")
    names = list(experiments()) if name == "all" else [name]
    if store:
        check_store(names)
    if name == "all":
        measured = _run_all(names, scale, out, resume, json)
    else:
        found = _run_one(name, scale, out, resume, quiet=json)
        if json:
            _print_json(found)
        measured = [name]
    if store:
        _store(measured, out, quiet=json)


def _run_one(name: str, scale: Scale, out: Path, resume: bool, quiet: bool) -> dict[str, Any]:
    """Run an experiment, write its results, and print them unless `quiet`."""
    from dataclasses import replace

    from xstream.bench.experiment import find_experiment, run_experiment
    from xstream.bench.results import finished, journal

    chosen = find_experiment(name)
    folder = out / chosen.name
    before = finished(folder, scale) if resume else None
    if before is not None:
        if not quiet:
            typer.echo(f"{chosen.name}: finished before, in {folder}")
        return before
    check_output_directory(folder)
    parts = journal(folder, scale, resume)
    try:
        with Progress(chosen.name) as progress:
            outcome = run_experiment(chosen, replace(scale, progress=progress), parts)
        found = outcome.to_json()
        files = _files(outcome, found)
    except KeyboardInterrupt:
        kept = "--resume continues it" if parts.rows else "none of its results are written"
        raise KeyboardInterrupt(f"{chosen.name} was not finished; {kept}") from None
    written = _write(files, folder)
    parts.remove()
    if not quiet:
        _print(found, written)
    return found


def _run_all(names: list[str], scale: Scale, out: Path, resume: bool, json: bool) -> list[str]:
    """Run every experiment that can run on this machine; report the others with the reason."""
    from xstream.bench.experiment import Unavailable, find_experiment

    done: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    for name in names:
        check_output_directory(out / find_experiment(name).name)
    try:
        for name in names:
            try:
                done[name] = _run_one(name, scale, out, resume, quiet=json)
            except Unavailable as why:
                left_out[name] = str(why)
    except KeyboardInterrupt as interrupt:
        for name in names:
            if name not in done:
                left_out.setdefault(name, "interrupted")
        if json:
            _print_json([*done.values(), *_left_out_rows(left_out)])
        kept = f"{', '.join(done)}: finished, in {out}" if done else "none was finished"
        raise KeyboardInterrupt(
            f"{interrupt or 'no further results are written'}; {kept}"
        ) from None
    if json:
        _print_json([*done.values(), *_left_out_rows(left_out)])
    else:
        for name, reason in left_out.items():
            typer.echo(f"left out: {name} ({reason})")
    return list(done)


def _store(names: list[str], out: Path, quiet: bool) -> None:
    """Put results beside the experiments; this comes last, for it changes the source tree."""
    from xstream.bench.experiment import find_experiment
    from xstream.bench.results import store

    for name in names:
        written = store(name, out / find_experiment(name).name)
        if not quiet:
            typer.echo("stored: " + ", ".join(map(str, written)))


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
