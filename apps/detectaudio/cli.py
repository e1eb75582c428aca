"""The commands of `xstream detectaudio`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xstream.console import (
    Progress,
    check_output_directory,
    check_output_file,
    interrupted_with,
    require_package,
    within,
)

app = typer.Typer(
    help="DETECTAUDIO: detect events in the four channels of a microphone array.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Sigmas = Annotated[
    float,
    typer.Option(
        help="Detection threshold, in deviations of the noise.", callback=within(0, 10_000)
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def generate(
    out: Annotated[Path, typer.Argument(help="WAV file to write, with four channels.")],
    seconds: Annotated[
        float, typer.Option(help="Length of the recording.", callback=within(1, 600))
    ] = 20.0,
    events: Annotated[int, typer.Option(help="Number of events.", callback=within(0, 1200))] = 8,
    low_db: Annotated[
        float,
        typer.Option(
            help="Signal-to-noise ratio of the weakest event.", callback=within(-100, 100)
        ),
    ] = 13,
    high_db: Annotated[
        float,
        typer.Option(
            help="Signal-to-noise ratio of the strongest event.", callback=within(-100, 100)
        ),
    ] = 30,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random numbers; the same seed gives the same samples.",
            callback=within(0, 2**32),
        ),
    ] = 1,
) -> None:
    """Write a recording with known events, and a CSV file with their positions."""
    from detectaudio.recording import generate as make
    from detectaudio.recording import write_wav
    from xstream.errors import InputError
    from xstream.report.page import write

    if out.suffix.lower() != ".wav":
        raise InputError(f"{out}: the file name must end in .wav")
    if low_db > high_db:
        raise InputError(f"--low-db must not exceed --high-db: {low_db:g} and {high_db:g}")
    require_package("soundfile")
    known = out.with_suffix(".csv")
    for path in (out, known):
        check_output_file(path)
    with (
        interrupted_with(f"{out} is not written"),
        Progress(out.name, unit="step") as progress,
    ):
        progress.begin(events + 2, "step")
        recording = make(seconds, events, (low_db, high_db), seed, progress=progress)
        progress.advance(note="writing")
        lines = ["start,stop,snr_db,bearing_rad"]
        lines += [
            f"{e.start},{e.stop},{e.snr_db:.2f},{e.bearing_rad:.4f}" for e in recording.events
        ]
        write(known, "\n".join(lines) + "\n")
        write_wav(recording, out)
    typer.echo(f"{out}: {recording.seconds:g} s, {len(recording.events)} events")


@app.command()
def find(
    files: Annotated[list[Path], typer.Argument(help="One WAV file, or one file per channel.")],
    sigmas: Sigmas = 7.0,
    listen: Annotated[
        int, typer.Option(help="Channel in which events are detected.", callback=within(0, 1023))
    ] = 0,
    cut: Annotated[
        Path | None, typer.Option(help="Directory for a WAV file of each event.")
    ] = None,
    json: Json = False,
) -> None:
    """Find events in sound files: their time, length and level in each channel."""
    import numpy as np

    from detectaudio.detector import Detector
    from detectaudio.query import find as search
    from detectaudio.query import heard
    from detectaudio.recording import Recording, read_wav, write_wav
    from xstream.errors import InputError

    if cut is not None:
        check_output_directory(cut)
    recording = read_wav(files)
    if not 0 <= listen < len(recording.channels):
        raise InputError(f"--listen must be from 0 to {len(recording.channels) - 1}, not {listen}")
    detector = Detector(sigmas=sigmas)
    total = recording.samples * len(recording.channels)
    with (
        interrupted_with("the recording was not searched completely; nothing is shown"),
        Progress("find", total, "sample") as progress,
    ):
        events = search(
            recording, detector, listen, progress=lambda run: progress.update(run.source_samples)
        )
    rows = []
    for number, found in enumerate(events):
        start, stop = heard(found, detector.padding)
        samples = [np.asarray(segment) for segment in found]
        loud = [
            float(np.sqrt(np.mean(np.square(channel, dtype=np.float64)))) for channel in samples
        ]
        rows.append({
            "start_s": start / recording.rate_hz, "seconds": (stop - start) / recording.rate_hz,
            "rms": [round(level, 6) for level in loud],
        })  # fmt: skip
        if cut is not None:
            write_wav(Recording(tuple(samples), recording.rate_hz), cut / f"event-{number:03}.wav")
    _print_found(rows, recording.seconds, json)


def _print_found(rows: list[dict[str, object]], seconds: float, as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps({"seconds": seconds, "events": rows}, indent=2))
        return
    for row in rows:
        levels = " ".join(f"{level:.4f}" for level in row["rms"])  # type: ignore[attr-defined]
        typer.echo(f"{row['start_s']:10.3f} s  {row['seconds']:6.3f} s  rms {levels}")
    typer.echo(f"{len(rows)} events in {seconds:g} s")


@app.command()
def evaluate(
    seconds: Annotated[
        float,
        typer.Option(help="Length of the recording for each level.", callback=within(1, 600)),
    ] = 120.0,
    sigmas: Sigmas = 7.0,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random numbers; the same seed gives the same recordings.",
            callback=within(0, 2**32),
        ),
    ] = 1,
    json: Json = False,
) -> None:
    """Measure how many events are found at each signal-to-noise ratio, and the false alarms."""
    from detectaudio.detector import Detector
    from detectaudio.outcome import SURE_DB, sweep

    levels = (3.0, 6.0, 8.0, 10.0, 11.0, 12.0, 13.0, 15.0, 20.0)
    with (
        interrupted_with("the evaluation was not finished; nothing is shown"),
        Progress("evaluate") as progress,
    ):
        rows = sweep(levels, seconds, Detector(sigmas=sigmas), seed, progress)
    if json:
        import json as writer

        names = ("snr_db", "events", "found", "false_alarms")
        typer.echo(writer.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return
    typer.echo("SNR, dB  events  found  false alarms")
    for level, events, found, false in rows:
        typer.echo(f"{level:7g}  {events:6}  {found / events:5.0%}  {false:12}")
    missed = sum(events - found for level, events, found, _ in rows if level >= SURE_DB)
    false = sum(row[3] for row in rows)
    hours = seconds * len(rows) / 3600
    typer.echo(
        f"{missed} events of {SURE_DB:g} dB and more missed; "
        f"{false / hours:.1f} false alarms per hour"
    )
