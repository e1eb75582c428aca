"""Queries over every operator with state, for tests that interrupt a run and let it go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xstream as xs

Results = dict[str, Any]
#: Declares the query; returns it with the sinks whose results are compared.
Declare = Callable[[], tuple[xs.Query, list[Any]]]

GRAPHS: dict[str, Declare] = {}
SAMPLES = np.random.default_rng(18).normal(size=1500)


def graph(declare: Declare) -> Declare:
    GRAPHS[declare.__name__] = declare
    return declare


def signal(
    q: xs.Query,
    window: int = 20,
    *,
    rate_hz: float = 100.0,
    samples: Any = SAMPLES,
    repeat: int = 1,
) -> xs.Stream:
    return q.source(xs.io.array(samples, rate_hz=rate_hz, window=window, repeat=repeat))


def rows(q: xs.Query, seed: int, count: int = 150, cars: int = 5) -> xs.Stream:
    """Tuples (time, car, x) with ascending times."""
    random_ = random.Random(seed)
    time, made = 0, []
    for _ in range(count):
        time += random_.randint(1, 4)
        made.append((time, random_.randrange(cars), random_.uniform(-1, 1)))
    return q.source(xs.io.iterable(made, out={"time": int, "car": int, "x": float}))


@xs.kernel(state=np.zeros(1))
def running(window, state):  # type: ignore[no-untyped-def]
    state[0] += window.sum()
    return state[0]


@xs.kernel(state={"seen": np.zeros(4, np.int64), "number": np.zeros(1, np.int64)}, out={"n": int})
def growing(window, state, out):  # type: ignore[no-untyped-def]
    seen, number = state.seen, state.number
    if number[0] == len(seen):
        seen = xs.grow(seen, 2 * len(seen))
    seen[number[0]] = len(window)
    number[0] += 1
    out.emit(seen[: number[0]].sum())


@xs.kernel
def spread(values):  # type: ignore[no-untyped-def]
    return values.max() - values.min()


@graph
def rewindow() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    src = signal(q, 17)
    return q, [
        src.rewindow(32, gap=-5).collect(),
        src.rewindow(10, gap=7).collect(),
        src.rewindow(64, flush=True).rewindow(30, gap=-20).dewindow().collect(),
    ]


@graph
def kernels() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    src = signal(q, 16)
    return q, [
        src.map(running).collect(),
        src.iterate(growing).collect(),
        src.fir([0.5, 0.25, 0.25]).map(running).count(),
        src.decimate(4, taps=[0.5, 0.5]).rewindow(9).collect(),
        src.threshold(1.0).collect(),
        src.rewindow(32).hanning(32).fft(32).map(xs.kernel(lambda w: np.abs(w).sum())).collect(),
        src.cfar(3.0, startup=20, refractory=3, padding=8, step=16).collect(),
    ]


@graph
def sync() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    src = signal(q, 20)
    fast = signal(q, 33, rate_hz=300.0, samples=np.arange(4500.0))
    found = src.threshold(1.5)
    return q, [
        found.sync(src, fast).collect(),
        fast.gate(found).collect(),
        src.gate(src.silence(0.9)).collect(),
        src.zip(fast).collect(),
    ]


@graph
def joined() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    a, b = rows(q, 1), rows(q, 2, 180)
    return q, [
        a.zip(b).collect(),
        a.join(b, on="time").collect(),
        a.select("car", "time").join(b.select("car", "x"), on="car").collect(),
        a.select("car", "time").join(b.select("car", "x"), on="car", unique=True).collect(),
        a.merge(b, by="time", tag="part").collect(),
        a.select("time").union(b.select("time")).collect(),
    ]


@graph
def held() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    a, b = rows(q, 3), rows(q, 4, 130)
    later = a.delay(9, time="time", stamp=True)
    return q, [
        later.merge(b, by="time").collect(),
        a.delay(7).collect(),
        a.wait_for(b, on="time").collect(),
        a.select("time", "car").wait_for(b.select("car"), on="car").collect(),
        a.shed(5, drop="random", seed=7).collect(),
    ]


@graph
def aggregated() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    src = rows(q, 5, 200)
    values = {
        "n": "count", "mean": ("mean", "x"), "std": ("std", "x"), "spread": (spread, "x"),
        "cars": ("distinct", "car"), "first": ("first", "x"), "least": ("min", "x"),
    }  # fmt: skip
    samples = signal(q, 23)
    return q, [
        src.aggregate(values, by="car", window=20, time="time").collect(),
        src.aggregate(values, window=30, step=10, time="time").collect(),
        src.aggregate(values, by="car", window=4, step=1).collect(),
        src.aggregate({"sum": ("sum", "x")}, window=10, time="time", report="change").collect(),
        src.aggregate(values, by="car").collect(),
        samples.aggregate({"top": ("max", "value")}, window=50).collect(),
    ]


@graph
def related() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    accounts = q.relation(
        "accounts", {"car": int, "balance": float, "last": int}, key="car", order="time",
        contents=[(3, 5.0, 0)],
    )  # fmt: skip
    a, b = rows(q, 6), rows(q, 7)
    paid = a.update(accounts, {"balance": ("add", "x"), "last": "time"}, returning="balance")
    asked = b.lookup(accounts, "balance", found="known")
    return q, [paid.collect(), asked.collect(), accounts]


@graph
def divided() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    src = signal(q, 30)
    left, right = src.deinterleave(2)
    parts = rows(q, 8).partition("car", 3)
    return q, [
        left.map(running).collect(),
        right.rewindow(11).collect(),
        parts.each(lambda part: part.aggregate({"n": "count"}, by="car", window=3))
        .merge()
        .collect(),
    ]


@xs.kernel
def halved(x):  # type: ignore[no-untyped-def]
    return x // 2


@xs.kernel
def positive(x):  # type: ignore[no-untyped-def]
    return x > 0


@graph
def cycle() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    back = q.feedback(int)
    src = q.source(xs.io.iterable([n * 37 % 1001 for n in range(120)], out=int))
    merged = src.merge(back)
    q.connect(back, merged.map(halved).filter(positive))
    return q, [merged.collect(), merged.count()]


class Smoother:
    """A Python operator with state."""

    def __init__(self) -> None:
        self.mean, self.seen = 0.0, np.zeros(0)

    def __call__(self, x: float) -> float:
        self.mean = 0.9 * self.mean + 0.1 * x
        self.seen = np.append(self.seen, x)
        return self.mean + len(self.seen)

    def save_state(self) -> dict[str, Any]:
        return {"mean": self.mean, "seen": self.seen}

    def load_state(self, saved: Any) -> None:
        self.mean, self.seen = saved["mean"], saved["seen"]


@graph
def python() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    src = rows(q, 10).select("x")
    listed = q.source(xs.io.iterable(counted, out=int))
    return q, [
        src.map(Smoother(), out=float).collect(),
        src.map(lambda x: x * 2, out=float).collect(),
        listed.collect(),
    ]


def counted() -> Iterator[int]:
    yield from range(90)


@graph
def paced() -> tuple[xs.Query, list[Any]]:
    q = xs.Query()
    clock = xs.testing.ManualClock()
    recording = xs.io.array(SAMPLES[:600], rate_hz=100.0, window=15)
    return q, [q.source(xs.io.paced(recording, speed=3.0, clock=clock)).rewindow(40).collect()]


def plain(result: Any) -> Any:
    """A result as values that can be compared."""
    if isinstance(result, xs.SigSeg):
        return result.start, np.asarray(result).tolist()
    if isinstance(result, dict):
        return {name: column.tolist() for name, column in result.items()}
    if isinstance(result, list | tuple):
        return [plain(each) for each in result]
    if hasattr(result, "samples"):
        return int(result), result.samples
    return result


def results(run: xs.Run, sinks: list[Any]) -> list[Any]:
    return [plain(run[sink]) for sink in sinks]
