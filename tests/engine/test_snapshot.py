"""A run says what it has counted so far, to any thread and without being stopped."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import xstream as xs


@xs.kernel
def gain(window: object, by: float) -> object:
    return window * by  # type: ignore[operator]


def samples(repeat: int = 1) -> object:
    recording = np.zeros(64 * 256, np.float32)
    return xs.io.array(recording, rate_hz=1e6, window=256, repeat=repeat)


def test_the_last_snapshot_is_what_the_statistics_say() -> None:
    q = xs.Query()
    out = q.source(samples(), name="in").rewindow(512).count(name="out")
    run = q.run()
    last = run.snapshot()
    assert (last.phase, last.wall_s) == ("done", run.wall_seconds)
    assert last.names == tuple(run.stats)
    for name, stats in run.stats.items():
        found = last[name]
        assert found == {
            "tuples": stats.tuples, "samples": stats.samples, "emitted": stats.emitted,
            "busy_ns": stats.busy_ns, "dropped": stats.dropped, "queue_peak": stats.queue_peak,
        }  # fmt: skip
    assert last.edges == ((0, 1, 0), (1, 2, 0))
    assert last["out"]["tuples"] == run[out] == 32
    with pytest.raises(KeyError):
        last["nobody"]


def test_members_of_a_region_are_counted_one_by_one() -> None:
    q = xs.Query()
    q.source(samples(), name="in").map(gain, 2.0, name="a").map(gain, 3.0, name="b").count(name="c")
    last = q.run().snapshot()
    assert [last[name]["tuples"] for name in ("in", "a", "b", "c")] == [64] * 4
    assert last.waiting.tolist() == [0, 0, 0]


@pytest.mark.parametrize("threads", [1, 2])
def test_another_thread_sees_counters_grow(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xstream.sched.threads.usable_cores", lambda: 4)
    q = xs.Query()
    stream = q.source(samples(1 << 40), name="in")
    for _ in range(20):
        stream = stream.rewindow(512).rewindow(256)
    stream.count(name="out")
    seen: list[xs.Snapshot] = []
    stop, runs = threading.Event(), list[xs.Run]()

    def read() -> None:
        while not runs:
            time.sleep(0.001)
        for _ in range(300):
            seen.append(runs[0].snapshot())
        stop.set()

    reader = threading.Thread(target=read)
    reader.start()
    run = q.run(threads=threads, stop=stop, progress=runs.append)
    reader.join()
    assert run.threads == threads
    for before, after in itertools.pairwise(seen):
        counted = [name != "busy_ns" for name in xs.Snapshot.COLUMNS]  # which is extrapolated
        assert (after.counters >= before.counters)[:, counted].all()
        assert after.wall_s >= before.wall_s
    last = run.snapshot()
    assert last["out"]["tuples"] > seen[0]["out"]["tuples"] > 0
    assert len(last.rings) == threads - 1
    assert set(last.parts) == set(range(threads))
    assert last.since(seen[0]).busy.max() <= 1.0


def test_waiting_tuples_are_those_of_queues() -> None:
    q = xs.Query()
    stream = q.source(samples(), name="in")
    found: list[int] = []

    def look(_: xs.SigSeg) -> None:
        found.append(int(runs[0].snapshot().waiting.sum()))

    stream.sink(look, name="slow")
    runs: list[xs.Run] = []
    # The first look is after the core has returned once: the source is larger than its burst.
    from xstream.run import Run

    whole = Run.execute

    def execute(run: Run, *given: object, **named: object) -> None:
        runs.append(run)
        whole(run, *given, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "execute", execute)
        run = q.run("fifo", tuple_burst=16)
    assert found[:16] == list(range(15, -1, -1))
    rates = run.snapshot().since(run.snapshot())
    assert rates["slow"].waiting == 0
    assert rates.pressure.tolist() == [0.0]


def test_rates_are_per_second_and_pressure_is_the_largest_of_three() -> None:
    q = xs.Query()
    q.source(samples(), name="in").rewindow(512, name="cut").count(name="out")
    run = q.run()
    first = run.snapshot()
    zero = np.zeros_like(first.counters)
    fields = {name: getattr(first, name) for name in xs.Snapshot.__slots__}
    before = xs.Snapshot(**{**fields, "wall_s": 0.0, "counters": zero})
    busy = zero.copy()
    busy[1, 3] = 250_000_000
    after = xs.Snapshot(
        **{**fields, "wall_s": 0.5, "counters": first.counters * [1, 1, 1, 0, 1, 1] + busy,
           "waiting": np.array([0, 4095]), "rings": (0.75,), "parts": (0, 1, 1)}
    )  # fmt: skip
    rates = after.since(before)
    assert rates["in"].samples_per_s == 2 * 64 * 256
    assert rates["cut"].busy == 0.5
    assert rates["out"].waiting == 4095
    assert rates.pressure.tolist() == [0.75, pytest.approx(1.0, abs=1e-3)]


def test_a_live_run_must_be_asked_for_properly(tmp_path: Path) -> None:
    q = xs.Query()
    q.source(samples(), name="in").count()
    for wrong in (70_000, -1, "0.0.0.0:80", "here", 1.5, [], "1:2:3"):
        with pytest.raises((xs.GraphError, xs.InputError), match=r"live|port"):
            q.run(live=wrong)  # type: ignore[arg-type]
    with pytest.raises(xs.InputError, match="cannot be written"):
        q.run(live=xs.Live(page=False, record=tmp_path))
