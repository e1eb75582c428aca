"""The commands below `xstream detectaudio`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="DETECTAUDIO: events in the four channels of a microphone array.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Sigmas = Annotated[float, typer.Option(help="How far an event stands above the noise.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def generate(
    out: Annotated[Path, typer.Argument(help="The WAV file to write: four channels.")],
    seconds: Annotated[float, typer.Option(help="How long.")] = 20.0,
    events: Annotated[int, typer.Option(help="How many events.")] = 8,
    low_db: Annotated[float, typer.Option(help="The weakest event's signal-to-noise ratio.")] = 13,
    high_db: Annotated[float, typer.Option(help="The strongest event's.")] = 30,
    seed: Annotated[int, typer.Option(help="Same seed, same samples.")] = 1,
) -> None:
    """Write a recording with known events, and beside it a CSV file that says where they are."""
    from detectaudio.recording import generate as make
    from detectaudio.recording import write_wav

    recording = make(seconds, events, (low_db, high_db), seed)
    write_wav(recording, out)
    lines = ["start,stop,snr_db,bearing_rad"]
    lines += [f"{e.start},{e.stop},{e.snr_db:.2f},{e.bearing_rad:.4f}" for e in recording.events]
    out.with_suffix(".csv").write_text("\n".join(lines) + "\n")
    typer.echo(f"{out}: {recording.seconds:g} s, {len(recording.events)} events")


@app.command()
def find(
    files: Annotated[list[Path], typer.Argument(help="One WAV file, or one for each channel.")],
    sigmas: Sigmas = 7.0,
    listen: Annotated[int, typer.Option(help="The channel that is listened to.")] = 0,
    cut: Annotated[Path | None, typer.Option(help="Write each event to a WAV file here.")] = None,
    json: Json = False,
) -> None:
    """Find events in sound files: when, how long, how loud in each channel."""
    import numpy as np

    from detectaudio.detector import Detector
    from detectaudio.query import find as search
    from detectaudio.query import heard
    from detectaudio.recording import Recording, read_wav, write_wav
    from xstream.errors import InputError

    recording = read_wav(files)
    if not 0 <= listen < len(recording.channels):
        raise InputError(f"--listen is 0 to {len(recording.channels) - 1}, not {listen}")
    detector = Detector(sigmas=sigmas)
    rows = []
    for number, found in enumerate(search(recording, detector, listen)):
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
            cut.mkdir(parents=True, exist_ok=True)
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
    seconds: Annotated[float, typer.Option(help="Length of the recording of each level.")] = 120.0,
    sigmas: Sigmas = 7.0,
    seed: Annotated[int, typer.Option(help="Same seed, same recordings.")] = 1,
    json: Json = False,
) -> None:
    """How many events of each signal-to-noise ratio are found, and the false alarms."""
    from detectaudio.detector import Detector
    from detectaudio.outcome import SURE_DB, sweep

    levels = (3.0, 6.0, 8.0, 10.0, 11.0, 12.0, 13.0, 15.0, 20.0)
    rows = sweep(levels, seconds, Detector(sigmas=sigmas), seed)
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
        f"{false / hours:.1f} false alarms an hour"
    )
