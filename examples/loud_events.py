"""Loud events of a sound file: a table of them as CSV, and their sound as WAV.

    python examples/loud_events.py [file.wav] [folder]

The output goes to the folder, or to the current one.

Without a file it listens to a made-up voice that counts from one to five. `events.csv` has the
range of samples of each event and its level, `events.wav` the events one after another.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import xstream as xs
from xstream.bench.recording import RATE_HZ, counting_aloud

WINDOW, LEVEL = 2048, 0.02


@xs.kernel(
    state={"range": np.full(2, -1), "energy": np.zeros(1)},
    out={"start": int, "stop": int, "level": float},
    at_end=True,
)
def events(keep, start, stop, std, state, out):
    """Adjacent loud windows are one event: it is over when a quiet window comes, or the end."""
    if keep and not out.ended:
        if state.range[0] < 0:
            state.range[0], state.energy[0] = start, 0.0
        state.range[1] = stop
        state.energy[0] += std * std * (stop - start)
    elif state.range[0] >= 0:
        width = state.range[1] - state.range[0]
        out.emit(state.range[0], state.range[1], np.sqrt(state.energy[0] / width))
        state.range[0] = -1


def recording(folder: Path) -> Path:
    """A file to listen to."""
    query = xs.Query("recording")
    query.source(xs.io.array(counting_aloud(), RATE_HZ)).write(xs.io.wav(folder / "counting.wav"))
    query.run()
    return folder / "counting.wav"


def main() -> None:
    """Declare the query, run it, print the table."""
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    sound = Path(sys.argv[1]) if len(sys.argv) > 1 else recording(folder)
    query = xs.Query("loud events")
    windows = query.source(xs.io.wav(sound, window=WINDOW))
    loud = windows.silence(LEVEL)  # (keep, start, stop) of each window
    found = loud.zip(windows.std()).iterate(events)
    found.write(xs.io.csv(folder / "events.csv"))
    windows.gate(loud).write(xs.io.wav(folder / "events.wav", gap="join"))
    run = query.run()
    print((folder / "events.csv").read_text(), end="")
    print(f"{run.source_samples:,} samples of {sound.name}")


if __name__ == "__main__":
    main()
