"""Loud passages of a sound file: windows whose deviation is above alpha and mean below beta.

    python examples/statfilter.py [file.wav]

Without a file it uses a synthetic voice that counts from one to five.
"""

from __future__ import annotations

import sys
from pathlib import Path

import xstream as xs
from xstream.bench.recording import read_recording

WINDOW, ALPHA, BETA = 4096, 0.02, 0.001


def main() -> None:
    """Declare the query, run it, print the passages."""
    samples, rate_hz = read_recording(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    query = xs.Query("statfilter")
    packets = query.source(xs.io.array(samples, rate_hz=rate_hz, window=1000))
    windows = packets.rewindow(WINDOW)
    out = windows.std_above(ALPHA).mean_below(BETA).collect()
    run = query.run()
    passages: list[tuple[int, int]] = []
    for window in run[out]:
        if passages and passages[-1][1] == window.start:
            passages[-1] = (passages[-1][0], window.stop)
        else:
            passages.append((window.start, window.stop))
    for start, stop in passages:
        print(f"{start / rate_hz:6.2f} s to {stop / rate_hz:6.2f} s")
    print(run)


if __name__ == "__main__":
    main()
