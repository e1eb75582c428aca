"""A rolling level (RMS) of samples that arrive by UDP.

    python examples/udp_level.py [port]

In another terminal, send it a sound file at the speed of its recording:

    xstream play voice.wav --to udp://127.0.0.1:9000

Without a port the example sends itself two seconds of a tone that grows louder. It prints the level
of the last quarter of a second ten times per second, until the sender ends the stream or Ctrl-C.
"""

from __future__ import annotations

import socket
import sys
import threading

import numpy as np

import xstream as xs

RATE_HZ = 8_000.0
WIDTH, STEP = 2_000, 800


@xs.kernel
def level(window):
    """The root of the mean square of the samples that have arrived; lost ones are NaN."""
    return np.sqrt(np.nanmean(window * window))


def levels(port: int) -> xs.Query:
    """Receive, put in order, cut overlapping windows, and print the level of each."""
    query = xs.Query("level")
    source = xs.io.udp(port, np.float32, RATE_HZ, sequence=True, gap="null")
    windows = query.source(source, name="udp").rewindow(WIDTH, gap=STEP - WIDTH)
    windows.zip(windows.map(level)).sink(show)
    return query


def show(window: xs.SigSeg, rms: float) -> None:
    """One line with a bar."""
    time_s = window.time_of(window.stop)
    bar = "lost" if np.isnan(rms) else "#" * round(60 * rms)
    print(f"{time_s:5.2f} s  {rms:.3f}  {bar}", flush=True)


def send_tone(port: int) -> None:
    """Two seconds of a tone that grows louder, at the speed of a microphone."""
    time = np.arange(round(2 * RATE_HZ)) / RATE_HZ
    tone = (time / 2 * np.sin(2764.6 * time)).astype(np.float32)
    query = xs.Query("tone")
    source = xs.io.paced(xs.io.array(tone, RATE_HZ, window=160))
    query.source(source).write(xs.io.udp(port, sequence=True))
    query.run()


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Receive until the end, and account for all datagrams."""
    given = int(sys.argv[1]) if len(sys.argv) > 1 else None
    port = given or free_port()
    query = levels(port)
    if given is None:
        threading.Timer(2.0, send_tone, [port]).start()
    else:
        print(f"waiting for: xstream play FILE --to udp://127.0.0.1:{port}")
    run = query.run()
    counters, latency = run.stats["udp"].counters, run.stats["udp"].latency
    print(
        f"{counters['datagrams']} datagrams, {counters['lost']} lost, "
        f"{counters['duplicates']} duplicates"
    )
    if latency is not None:
        print(
            f"latency: median {latency.p50_ns / 1e6:.2f} ms, 99 % {latency.p99_ns / 1e6:.2f} ms, "
            f"worst {latency.worst_ns / 1e6:.2f} ms"
        )


if __name__ == "__main__":
    main()
