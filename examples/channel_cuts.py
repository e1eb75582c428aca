"""Four channels of a Parquet file, cut around what is detected in the first of them.

    python examples/channel_cuts.py [folder]

The files go to the folder, or to the current one.

Four microphones record noise, and four times a short tone. The query finds the tone in the first
channel and writes all four channels around it, with the index of each sample, to `cuts.parquet`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import xstream as xs

RATE_HZ, SECONDS, WINDOW, LEVEL = 8_000.0, 20, 256, 0.1
#: Samples before and after a detection that are cut out with it.
PADDING = 400
TONES_S = (2.0, 7.5, 11.25, 18.0)
CHANNELS = ("north", "east", "south", "west")


@xs.kernel(state=np.full(2, -1), out={"keep": bool, "start": int, "stop": int}, at_end=True)
def around(keep, start, stop, state, out):
    """Ask for each run of loud windows with padding, and discard what nobody will ask for."""
    if keep and not out.ended:
        if state[0] < 0:
            state[0] = start
        state[1] = stop
        return
    if state[0] >= 0:
        out.emit(True, max(state[0] - PADDING, 0), state[1] + PADDING)
        state[0] = -1
    out.emit(False, 0, max(start - PADDING, 0))


def record(path: Path) -> None:
    """Write the recording: the tone reaches every microphone a little later."""
    noise = np.random.default_rng(4)
    time = np.arange(round(SECONDS * RATE_HZ)) / RATE_HZ
    query = xs.Query("record")
    streams = []
    for number in range(len(CHANNELS)):
        heard = noise.normal(0.0, 0.02, len(time))
        for begin in TONES_S:
            after = time - begin - 0.003 * number
            heard += np.where((after >= 0) & (after < 0.2), 0.5 * np.sin(2764.6 * after), 0.0)
        streams.append(query.source(xs.io.array(heard.astype(np.float32), RATE_HZ)))
    streams[0].zip(*streams[1:]).write(xs.io.parquet(path, columns=CHANNELS))
    query.run()


def main() -> None:
    """Record, cut, and print what was cut."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    record(folder / "array.parquet")
    query = xs.Query("cuts")
    channels = query.sources(
        xs.io.parquet(folder / "array.parquet", window=WINDOW, columns=CHANNELS, layout="streams")
    )
    cuts = channels[0].silence(LEVEL).iterate(around).sync(*channels)
    cuts.write(xs.io.parquet(folder / "cuts.parquet", columns=CHANNELS, index=True))
    out = cuts.collect()
    for north, *_ in query.run()[out]:
        begin_s, end_s = north.time_of(north.start), north.time_of(north.stop)
        print(
            f"{begin_s:6.3f} s to {end_s:6.3f} s: {north.width} samples of {len(CHANNELS)} channels"
        )


if __name__ == "__main__":
    main()
