"""A stream of plain records without segments: finds sensors whose reading jumps.

The kernel keeps the last reading of every sensor in state that grows with their number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import xstream as xs

Reading = tuple[int, int, float]


@xs.kernel(
    state={"last": np.full(1, np.nan)},
    out={"time": int, "sensor": int, "jump": float},
)
def jumps(time, sensor, celsius, limit, state, out):  # type: ignore[no-untyped-def]
    """Emit readings that differ from the sensor's last one by more than the limit."""
    last = state.last
    known = len(last)
    if sensor >= known:
        last = xs.grow(last, sensor + 1)
        last[known:] = np.nan
    if abs(celsius - last[sensor]) > limit:
        out.emit(time, sensor, celsius - last[sensor])
    last[sensor] = celsius


def readings() -> Iterator[Reading]:
    """Generate a thousand readings of fifty thermometers; number 17 fails twice."""
    chance = np.random.default_rng(3)
    celsius = chance.normal(20.0, 2.0, 50)
    for time in range(1000):
        celsius += chance.normal(0.0, 0.05, 50)
        for sensor in range(50):
            broken = sensor == 17 and time in (400, 700)
            yield time, sensor, float(celsius[sensor]) + (30.0 if broken else 0.0)


def main() -> None:
    """Declare, run, print."""
    query = xs.Query("jumps")
    schema = {"time": int, "sensor": int, "celsius": float}
    out = query.source(xs.io.iterable(readings, out=schema)).iterate(jumps, 5.0).collect()
    for time, sensor, jump in query.run()[out]:
        print(f"round {time}: sensor {sensor} jumps by {jump:+.1f} °C")


if __name__ == "__main__":
    main()
