"""The commands of `xstream leaks`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xstream.console import Progress, check_output_file, interrupted_with, whole_file, within

app = typer.Typer(
    help="PIPELINE: detect leaks of a water main from the echoes of pressure transients.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def generate(
    out: Annotated[Path, typer.Argument(help=".npy file to write.")],
    seconds: Annotated[
        float,
        typer.Option(help="Length of the recording, at 8,000 samples/s.", callback=within(1, 3600)),
    ] = 60.0,
    transients: Annotated[
        int, typer.Option(help="Number of pressure transients.", callback=within(0, 3200))
    ] = 20,
    leaks: Annotated[
        int, typer.Option(help="Number of transients with a leak.", callback=within(0, 3200))
    ] = 8,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random numbers; the same seed gives the same samples.",
            callback=within(0, 2**32),
        ),
    ] = 1,
) -> None:
    """Write pressure with known leaks, and a CSV file with their positions."""
    import numpy as np

    from leaks.pressure import generate as make
    from xstream.errors import InputError
    from xstream.report.page import write

    if out.suffix != ".npy":
        raise InputError(f"{out}: the file name must end in .npy")
    known = out.with_suffix(".csv")
    for path in (out, known):
        check_output_file(path)
    with interrupted_with(f"{out} is not written"):
        pressure = make(seconds, transients, leaks, seed=seed)
        lines = ["at,height_bar,echo,leak"]
        lines += [
            f"{t.at},{t.height_bar:.5f},{t.echo:.3f},{int(t.leak)}" for t in pressure.transients
        ]
        write(known, "\n".join(lines) + "\n")
        with whole_file(out) as part, part.open("wb") as file:
            np.save(file, pressure.samples)
    typer.echo(f"{out}: {seconds:g} s, {transients} transients, {leaks} of them with a leak")


@app.command()
def find(
    file: Annotated[Path, typer.Argument(help=".npy file, or CSV file whose last column is read.")],
    rate_hz: Annotated[
        float, typer.Option(help="Samples per second.", callback=within(0.001, 1e9))
    ] = 8_000.0,
    json: Json = False,
) -> None:
    """Find leaks in a file: their time and the strength of the echo."""
    from leaks.pressure import read
    from leaks.query import find as search

    pressure = read(file, rate_hz)
    with (
        interrupted_with("the file was not searched completely; nothing is shown"),
        Progress("find", len(pressure.samples), "sample") as progress,
    ):
        found = search(pressure, progress=lambda run: progress.update(run.source_samples))
    if json:
        import json as writer

        rows = [{"second": at / rate_hz, "sample": at, "ratio": ratio} for at, ratio in found]
        typer.echo(writer.dumps(rows, indent=2))
        return
    for at, ratio in found:
        typer.echo(f"{at / rate_hz:10.3f} s  echo {ratio:6.3f} of its front: a leak")
    typer.echo(f"{len(found)} leaks")


@app.command()
def evaluate(
    seconds: Annotated[
        float,
        typer.Option(help="Length of the recording for each level.", callback=within(5, 3600)),
    ] = 150.0,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random numbers; the same seed gives the same recordings.",
            callback=within(0, 2**32),
        ),
    ] = 1,
    json: Json = False,
) -> None:
    """Measure how many leaks are found at each signal-to-noise ratio, and the false alarms."""
    from leaks.outcome import SURE_DB, sweep

    levels = (20.0, 24.0, 26.0, 28.0, 30.0, 32.0, 34.0, 40.0, 50.0)
    with (
        interrupted_with("the evaluation was not finished; nothing is shown"),
        Progress("evaluate") as progress,
    ):
        rows = sweep(levels, seconds, seed=seed, progress=progress)
    if json:
        import json as writer

        names = ("snr_db", "leaks", "found", "false_alarms")
        typer.echo(writer.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return
    typer.echo("height, dB  leaks  found  false alarms")
    for level, leaks, found, false in rows:
        typer.echo(f"{level:10g}  {leaks:5}  {found / leaks:5.0%}  {false:12}")
    missed = sum(leaks - found for level, leaks, found, _ in rows if level >= SURE_DB)
    false = sum(row[3] for row in rows)
    typer.echo(
        f"{missed} leaks of {SURE_DB:g} dB and more missed; {false} false alarms in "
        f"{seconds * len(rows) / 60:g} minutes"
    )
