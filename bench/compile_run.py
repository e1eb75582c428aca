"""Declare and run a query of ten operators once, and print its compile time.

`python -m bench.compile_run maps` (or mixed) prints one line of JSON: CPU seconds for importing
numba, for declaring the query, and for its first run. With an empty `XSTREAM_CACHE_DIR`
everything is compiled.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import xstream as xs

#: The number of tuples that the last operator of each query emits for SAMPLES samples.
TUPLES = {"maps": 16, "mixed": 64}
SAMPLES, WINDOW = 16_384, 1024


@xs.kernel
def scaled(window, factor):
    return window * factor


@xs.kernel
def centred(window):
    return window - window.mean()


@xs.kernel
def squared(window):
    return window * window


@xs.kernel
def rooted(window):
    return np.sqrt(np.abs(window))


@xs.kernel
def reversed_in_time(window):
    return window[::-1]


@xs.kernel(out=xs.Out(np.float32))
def differences(window, out):
    out[0] = 0
    for i in range(1, len(window)):
        out[i] = window[i] - window[i - 1]


@xs.kernel(each=True)
def clipped(x, limit):
    return min(max(x, -limit), limit)


@xs.kernel
def loud(window, level):
    return np.std(window) > level


@xs.kernel
def present(window):
    return len(window) > 0 and not np.isnan(window[0])


@xs.kernel(out=xs.Out(np.float32))
def halves(window, out):
    middle = len(window) // 2
    out.emit(window[:middle])
    out.emit(window[middle:])


def ten_maps(source: xs.Stream) -> xs.Stream:
    """Ten operators that return or fill a window each."""
    first = source.map(scaled, 0.5).map(centred).map(squared).map(rooted).map(reversed_in_time)
    second = first.map(differences).map(clipped, 100.0).map(scaled, np.float32(2)).map(centred)
    return second.map(rooted)


def mixed_chain(source: xs.Stream) -> xs.Stream:
    """Maps, filters, operators that emit, and statistics of the library."""
    first = source.map(scaled, 0.5).map(clipped, 1e6).filter(loud, 0.1).iterate(halves)
    second = first.std_above(0.01).map(rooted).iterate(halves).filter(present)
    return second.map(differences).mean()


def main(which: str) -> None:
    """Compile and run the query once."""
    begin = time.process_time()
    import numba  # noqa: F401

    imported = time.process_time()
    query = xs.Query()
    samples = np.random.default_rng(1).normal(0, 1000, SAMPLES).astype(np.float32)
    source = query.source(xs.io.array(samples, window=WINDOW))
    out = {"maps": ten_maps, "mixed": mixed_chain}[which](source).collect()
    declared = time.process_time()
    tuples = len(query.run()[out])
    ran = time.process_time()
    assert tuples == TUPLES[which], tuples
    seconds = {"import": imported - begin, "declare": declared - imported, "run": ran - declared}
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1])
