"""`xstream linearroad demo`: generates 15 rush-hour minutes, runs, validates and reports them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from linearroad.validation.verdict import Verdict

__all__ = ["demo", "demo_command"]

#: Late enough in the three hours for tolls and queues, with a few accidents.
FROM_MINUTE, MINUTES, SPEED, SEED = 120, 15, 20.0, 1


def demo(out: Path, from_minute: int, minutes: int, speed: float, master: str | None) -> Verdict:
    """Generate, run, validate and report below `out`, and print each step."""
    from linearroad.generation.job import generate
    from linearroad.generation.parameters import TrafficParameters
    from linearroad.generation.progress import show
    from linearroad.run.command import run_command
    from linearroad.spark import session
    from linearroad.validation.job import MEMORY, HistoryPaths, validate
    from linearroad.validation.progress import steps
    from xstream.console import check_output_directory, require_package

    for package in ("pyspark", "pandas", "plotly"):
        require_package(package)
    from linearroad.validation.page import write_report

    traffic, answers = out / "traffic", out / "answers"
    check_output_directory(out)
    answers.mkdir(parents=True, exist_ok=True)
    with session(master, "demo", MEMORY):
        typer.echo(f"1. one expressway, minutes {from_minute} to {from_minute + minutes}, history")
        parameters = TrafficParameters(
            expressways=1, minutes=minutes, seed=SEED, from_minute=from_minute
        )
        generate(parameters, traffic, master=master, history=True, progress=show)
        typer.echo(f"2. all queries, paced: {speed:g} times as fast as real traffic")
        run_command(input=traffic, out=answers, history=traffic, speed=str(speed))
        typer.echo("3. every answer computed once more by Spark, and compared")
        with steps() as say:
            shown = validate(traffic, answers, HistoryPaths(traffic), master=master, say=say)
    page = write_report(answers, shown, "Linear Road: the demo", _road(traffic, answers))
    for each in shown.verdict.types:
        typer.echo(f"   {each.name:<20}{each.answered:>9,} answers, {each.right:,} right")
    typer.echo(shown.verdict.line())
    for sentence in shown.verdict.first_differences[:5]:
        typer.echo(f"  {sentence}")
    typer.echo(f"report: {page}")
    return shown.verdict


def _road(traffic: Path, answers: Path) -> list[str]:
    """What the page shows before the checks: the road, and one vehicle on it."""
    from linearroad.description.demo_page import road_parts
    from linearroad.description.figures import measure_expressway
    from linearroad.description.story import tell
    from linearroad.generation.manifest import read_manifest

    manifest = read_manifest(traffic)
    figures = measure_expressway(traffic, manifest, 0)
    accidents = manifest["simulated"][0]["accidents"]
    return road_parts(figures, accidents, tell(traffic, manifest, answers / "output.csv"))


def demo_command(
    out: Annotated[Path, typer.Option(help="Output directory for all steps.")] = Path("demo-out"),
    from_minute: Annotated[
        int, typer.Option(help="Start at this minute of the three hours.")
    ] = FROM_MINUTE,
    minutes: Annotated[int, typer.Option(help="Length of the stream in minutes.")] = MINUTES,
    speed: Annotated[float, typer.Option(help="How many times faster than real time.")] = SPEED,
    master: Annotated[str | None, typer.Option(help="Spark master; default: local[*].")] = None,
) -> None:
    """Generate rush-hour traffic, run it paced, validate the answers and write the report."""
    from xstream.console import interrupted_with

    with interrupted_with(f"what is finished is kept in {out}"):
        passed = demo(out, from_minute, minutes, speed, master).passed
    if not passed:
        raise typer.Exit(1)
