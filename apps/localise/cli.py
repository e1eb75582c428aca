"""The commands of `xstream localise`."""

from __future__ import annotations

from typing import Annotated

import typer

from xstream.console import interrupted_with, within

app = typer.Typer(
    help="Acoustic localisation: locate calls with several microphone arrays.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """Acoustic localisation: locate calls with several microphone arrays."""


@app.command()
def demo(
    arrays: Annotated[int, typer.Option(help="Number of arrays, of four microphones each.")] = 4,
    calls: Annotated[int, typer.Option(help="Number of calls.", callback=within(0, 100))] = 8,
    snr_db: Annotated[
        float,
        typer.Option(help="Signal-to-noise ratio of a call at 10 m.", callback=within(-100, 100)),
    ] = 30.0,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random numbers; the same seed gives the same scene.",
            callback=within(0, 2**32),
        ),
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Generate calls in a field, locate them, and compare with the known positions."""
    from localise.outcome import evaluate
    from localise.query import locate
    from localise.scene import generate

    with interrupted_with("not all calls were located; nothing is shown"):
        scene = generate(arrays, calls, snr_db, seed)
        found = locate(scene)
    outcome = evaluate(scene, found)
    if json:
        import json as writer

        typer.echo(writer.dumps(outcome.to_json(), indent=2))
        return
    for each in found:
        typer.echo(
            f"{each.second:8.3f} s  x {each.x_m:7.2f} m  y {each.y_m:7.2f} m  "
            f"{each.arrays} arrays, bearings {each.off_m:.2f} m off"
        )
    errors = ""
    if outcome.errors_m:
        errors = (
            f"; errors {outcome.median_m:.3f} m in the median, {outcome.largest_m:.3f} m at most"
        )
    typer.echo(
        f"{len(outcome.errors_m)} of {len(scene.calls)} calls located, "
        f"{outcome.false_alarms} false alarms{errors}"
    )
