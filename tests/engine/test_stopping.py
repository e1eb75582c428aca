"""Runs that somebody stops keep their results; runs that somebody watches report."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels
from xstream.console import progress as progress_room

ROOT = Path(__file__).resolve().parents[2]


def endless(q: xs.Query, **options: Any) -> Any:
    return q.source(
        xs.io.array(np.arange(4096, dtype=np.float32), window=64, repeat=None, **options)
    )


def stopped_soon(q: xs.Query, after_s: float = 0.2, **options: Any) -> xs.Run:
    stop = threading.Event()
    timer = threading.Timer(after_s, stop.set)
    timer.start()
    run = q.run(stop=stop, **options)  # without the stop it would never end
    timer.join()
    assert run.stopped
    assert "stopped" in repr(run)
    return run


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_an_endless_source_is_stopped_from_another_thread(scheduler: str) -> None:
    q = xs.Query()
    src = endless(q)
    count, last = src.filter(kernels.keep_all).count(), src.map(lambda seg: seg.start, out=int)
    starts = last.collect()
    run = stopped_soon(q, scheduler=scheduler)
    assert run[count] == len(run[starts]) == run.stats["array"].tuples > 100
    assert run[starts] == list(range(0, 64 * run[count], 64))


def test_a_stop_does_not_wait_for_what_a_missing_rate_control_let_in() -> None:
    q = xs.Query()
    src = q.source(xs.io.samples(np.zeros(200_000)))
    out = src.filter(lambda i, x: time.sleep(0.001) or True).count()
    for scheduler in xs.SCHEDULER_NAMES:
        run = stopped_soon(q, 0.1, scheduler=scheduler, tuple_burst=None)
        assert 0 < run[out] < 20_000


@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_a_cycle_without_an_end_is_stopped(scheduler: str) -> None:
    q = xs.Query()
    start = q.source(xs.io.iterable([(1.0, 0)], out=(float, int)))
    back = q.feedback((float, int))
    merged = start.merge(back)
    q.connect(back, merged.map(kernels.one_more))
    out = merged.count()
    run = stopped_soon(q, scheduler=scheduler)
    assert run[out] > 1000


def test_a_source_that_waits_is_stopped() -> None:
    q = xs.Query()
    out = endless(q, offered_hz=1.0).count()
    run = stopped_soon(q)
    assert run[out] == 0


def test_stopped_before_it_began() -> None:
    stop = threading.Event()
    stop.set()
    q = xs.Query()
    out = endless(q).count()
    run = q.run(stop=stop)
    assert run.stopped
    assert run[out] == 0


def test_an_operator_that_is_interrupted_leaves_the_results_so_far() -> None:
    def interrupted(seg: xs.SigSeg) -> bool:
        if seg.start >= 640:
            raise KeyboardInterrupt
        return True

    for scheduler in xs.SCHEDULER_NAMES:
        q = xs.Query()
        src = endless(q)
        before, after = src.collect(), src.filter(interrupted).collect()
        run = q.run(scheduler, tuple_burst=1)
        assert run.stopped
        assert [seg.start for seg in run[after]] == list(range(0, 640, 64))
        assert [seg.start for seg in run[before]][:10] == list(range(0, 640, 64))
        with pytest.raises(KeyboardInterrupt):
            run.uninterrupted()


def test_a_run_that_somebody_stopped_on_purpose_was_not_interrupted() -> None:
    q = xs.Query()
    endless(q).count()
    run = stopped_soon(q, 0.05)
    assert run.uninterrupted() is run


INTERRUPTED = """
import sys, numpy as np, xstream as xs
from tests.engine import kernels
from xstream.console import progress as progress_room

q = xs.Query()
src = q.source(xs.io.array(np.ones(1 << 16, np.float32), window=64, repeat=None))
stream = src.filter(kernels.keep_all)
if sys.argv[1] == "python":
    stream = stream.map(lambda seg: seg)
out = stream.count()
told = []

def under_way(run):  # an interrupt before the run has begun is another matter
    if not told:
        told.append(True)
        print("ready", flush=True)

run = q.run(sys.argv[2], progress=under_way)
print(run.stopped, run[out] > 0, run[out].samples == 64 * run[out], flush=True)
"""


@pytest.mark.parametrize("how", ["compiled", "python"])
@pytest.mark.parametrize("scheduler", ["df", "rtc"])
def test_ctrl_c_ends_with_the_results_so_far(how: str, scheduler: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, how, scheduler],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell that starts tests in the background leaves SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert first == "ready\n", err
    assert out == "True True True\n", err
    assert process.returncode == 0
    assert err == ""


def test_progress_is_plain_lines_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_room, "QUIET_S", 0.2)
    monkeypatch.setattr(progress_room, "LINE_EVERY_S", 0.5)
    q = xs.Query("slowly")
    q.source(xs.io.array(np.zeros(24), window=1, offered_hz=20.0)).count()
    q.run(progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 4
    assert lines[0].startswith("slowly: sample ")
    assert lines[0].endswith(" million samples/s")
    assert lines[-1].startswith("<Run of slowly: done, 24 samples in ")


def test_progress_calls_a_function_with_the_run() -> None:
    q = xs.Query()
    out = q.source(xs.io.array(np.zeros(20), window=1, offered_hz=100.0)).count()
    seen: list[int] = []
    run = q.run(progress=lambda run: seen.append(run[out]))
    assert len(seen) >= 2
    assert seen == sorted(seen)
    assert seen[-1] == run[out] == 20
