"""Tuples by the clock: when they are let in, what is measured, and how it ends."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.io.files import WAYS, joined, leaves_nothing, read, samples_of

RAMP = np.arange(1000, dtype=np.float32)


def ramp(**options: Any) -> Any:
    return xs.io.array(RAMP, rate_hz=100.0, window=100, **options)


@pytest.mark.parametrize("way", WAYS)
def test_windows_are_due_when_their_last_sample_is(way: Any) -> None:
    clock = xs.testing.ManualClock(now=50.0)
    seen: list[tuple[float, int]] = []
    q = xs.Query()
    q.source(xs.io.paced(ramp(), speed=4.0, clock=clock)).sink(
        lambda segment: seen.append((round(clock(), 6), segment.start))
    )
    q.run(*way)
    assert seen == [(50.25 * 1 + 0.25 * i, 100 * i) for i in range(10)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("burst", [None, 1, 64])
def test_pacing_changes_no_samples_and_keeps_no_memory(way: Any, burst: int | None) -> None:
    clock = xs.testing.ManualClock()
    (segments,) = read(
        xs.io.paced(ramp(repeat=3), speed=30.0, clock=clock), *way, tuple_burst=burst
    )
    np.testing.assert_array_equal(joined(segments), np.tile(RAMP, 3))
    leaves_nothing(lambda q: q.source(xs.io.paced(ramp(), 10.0, clock=clock)).count(), *way)


def test_files_iterables_and_several_streams_are_paced(tmp_path: Path) -> None:
    frames = np.stack([RAMP, -RAMP], axis=1)
    np.save(tmp_path / "x.npy", frames)
    source = xs.io.npy(tmp_path / "x.npy", rate_hz=100.0, window=50, layout="streams")
    clock = xs.testing.ManualClock()
    found = samples_of(xs.io.paced(source, clock=clock))
    np.testing.assert_array_equal(found, frames.T)
    assert clock() == pytest.approx(10.0)
    rows = [(7.0, 1), (7.5, 2), (9.0, 3)]
    timed = xs.io.iterable(rows, out={"at": float, "n": int})
    clock = xs.testing.ManualClock()
    assert read(xs.io.paced(timed, by="at", clock=clock)) == [rows]
    assert clock() == pytest.approx(2.0)


def test_lateness_is_measured_against_the_schedule() -> None:
    """Each window takes the sink a second: the tenth, due at 10 s, is let in at 10 s + 9 * 0.5."""
    clock = xs.testing.ManualClock()
    q = xs.Query()
    q.source(xs.io.paced(ramp(), clock=clock), name="mic").sink(lambda segment: clock.advance(1.5))
    stats = q.run(tuple_burst=1).stats["mic"]
    assert stats.lateness is not None
    assert stats.latency is not None
    assert stats.lateness.count == stats.latency.count == 10
    assert stats.lateness.worst_ns == pytest.approx(4.5e9, rel=0.001)
    assert stats.lateness.p50_ns == pytest.approx(2.5e9, rel=0.04)
    assert stats.latency.worst_ns >= stats.lateness.worst_ns


def test_the_system_clock_is_kept() -> None:
    q = xs.Query()
    out = q.source(xs.io.paced(ramp(), speed=50.0), name="mic").count()
    begin = time.perf_counter()
    run = q.run()
    assert time.perf_counter() - begin >= 0.2
    assert run[out] == 10
    stats = run.stats["mic"]
    assert stats.latency is not None
    assert 0 < stats.latency.p50_ns <= stats.latency.p99_ns <= stats.latency.worst_ns


def test_unpaced_sources_have_no_delays() -> None:
    q = xs.Query()
    q.source(ramp(), name="plain").count()
    stats = q.run().stats["plain"]
    assert stats.lateness is stats.latency is None


def test_two_paced_sources_share_a_run() -> None:
    clock = xs.testing.ManualClock()
    seen: list[tuple[str, float]] = []
    q = xs.Query()
    for name, speed in (("slow", 1.0), ("fast", 2.0)):
        stream = q.source(xs.io.paced(ramp(), speed=speed, clock=clock), name=name)
        stream.sink(lambda segment, name=name: seen.append((name, clock())))
    q.run()
    for name, last_s in (("slow", 10.0), ("fast", 5.0)):
        times = [at for who, at in seen if who == name]
        assert len(times) == 10
        assert times == sorted(times)
        assert last_s <= times[-1] <= last_s + 0.1


def test_waiting_ends_when_a_run_is_stopped() -> None:
    q = xs.Query()
    out = q.source(xs.io.paced(ramp(), speed=0.001)).count()
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    begin = time.perf_counter()
    run = q.run(stop=stop)
    assert run.stopped
    assert run[out] == 0
    assert time.perf_counter() - begin < 5.0


def test_what_cannot_be_paced_says_why() -> None:
    q = xs.Query()
    with pytest.raises(xs.SchemaError, match="nothing says when"):
        q.source(xs.io.paced(xs.io.array(RAMP)))
    with pytest.raises(xs.SchemaError, match="by='when' is no field"):
        q.source(xs.io.paced(ramp(), by="when"))
    with pytest.raises(xs.GraphError, match="speed is a positive number"):
        xs.io.paced(ramp(), speed=0)
    with pytest.raises(xs.GraphError, match="a clock is called and waits"):
        xs.io.paced(ramp(), clock=time)  # type: ignore[arg-type]


def test_errors_of_the_source_and_of_the_clock_are_told() -> None:
    def failing() -> Any:
        yield (1.0, 1)
        raise ValueError("no more")

    class Broken(xs.testing.ManualClock):
        def wait(self, seconds: float, stop: Any) -> None:
            raise RuntimeError("the battery is flat")

    q = xs.Query()
    timed = xs.io.iterable(failing, out={"at": float, "n": int})
    q.source(xs.io.paced(timed, by="at", clock=xs.testing.ManualClock())).count()
    with pytest.raises(xs.OperatorError, match="paced iterable: ValueError: no more"):
        q.run()
    q = xs.Query()
    q.source(xs.io.paced(ramp(), clock=Broken())).count()
    with pytest.raises(xs.OperatorError, match="paced array: RuntimeError: the battery is flat"):
        q.run()
