"""One operator in three ways: from the library, as a kernel, and as plain Python."""

from __future__ import annotations

import math

import numpy as np

import xstream as xs

WINDOW, ALPHA = 1024, 1.0


@xs.kernel
def louder(window, alpha):  # type: ignore[no-untyped-def]
    """Return whether the standard deviation is above alpha; compiled before the run."""
    level = window.mean()
    total = 0.0
    for i in range(len(window)):
        x = window[i] - level
        total += x * x
    return math.sqrt(total / len(window)) > alpha


def louder_in_python(segment: xs.SigSeg) -> bool:
    """The same as a plain Python function, which gets the segment itself."""
    return bool(np.asarray(segment).std(dtype=np.float64) > ALPHA)


def main() -> None:
    """Run all three and compare."""
    noise = np.random.default_rng(2).normal(0.0, 1.0, 1 << 18).astype(np.float32)
    found = []
    for name in ("library", "kernel", "python"):
        query = xs.Query(name)
        windows = query.source(xs.io.array(noise, rate_hz=1e6, window=WINDOW, repeat=20))
        if name == "library":
            stream = windows.std_above(ALPHA)
        elif name == "kernel":
            stream = windows.filter(louder, ALPHA)
        else:
            stream = windows.filter(louder_in_python)
        out = stream.collect()
        run = query.run()
        found.append([segment.start for segment in run[out]])
        print(
            f"{name:8} {len(found[-1]):5} windows, {run.samples_per_second / 1e6:8.1f} Msamples/s"
        )
    assert found[0] == found[1] == found[2]


if __name__ == "__main__":
    main()
