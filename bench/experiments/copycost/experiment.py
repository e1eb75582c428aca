"""A copy of a segment against a Fourier transform of 256 points and against X * X (section III.B.1).

Each cost is the difference of two queries that are measured in alternation: a chain of operators that pass
their input on, with and without copies; the same chain with operators that compute X * X; one
operator that transforms, and none. The paper does not say whether its X * X is taken sample by
sample or is a dot product: both are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import xstream as xs
from xstream.bench.experiment import Experiment, Finding, Plot, Row, Scale
from xstream.bench.phrases import listed
from xstream.bench.queries import Engine
from xstream.bench.report import Figure
from xstream.bench.trials import Trial, repetitions

from .kernels import has_energy, square

WINDOWS = (256, 1024, 4096, 16384)
#: The window of the other benchmarks; the figures are its ratios.
TYPICAL = 4096
TRANSFORM = 256
CHAIN = 10
#: Samples of the recording, which is played repeatedly and stays in the cache.
SAMPLES = 1 << 16
OPERATIONS = {
    "copy": "copy",
    "fft": f"FFT of {TRANSFORM} points",
    "square": "X * X by sample",
    "dot": "X * X as a dot product",
}
#: "the cost of making a copy consistently dwarfs X * X by a factor of 10"
PAPERS_RATIO = 10.0


def _chain(stream: xs.Stream, step: Callable[[xs.Stream], xs.Stream]) -> xs.Stream:
    for _ in range(CHAIN):
        stream = step(stream)
    return stream


#: Name, memory manager, and the operators between source and sink.
QUERIES: dict[str, tuple[str, Callable[[xs.Stream], xs.Stream]]] = {
    "nothing": ("refcount-lazy", lambda stream: stream),
    "passed": ("refcount-lazy", lambda stream: _chain(stream, lambda s: s.passed())),
    "copied": ("copy-always", lambda stream: _chain(stream, lambda s: s.passed())),
    "squared": ("refcount-lazy", lambda stream: _chain(stream, lambda s: s.map(square))),
    "multiplied": ("refcount-lazy", lambda stream: _chain(stream, lambda s: s.filter(has_energy))),
    "transformed": ("refcount-lazy", lambda stream: stream.fft(TRANSFORM)),
}


@dataclass(frozen=True, slots=True)
class Played:
    """One query over a recording in windows of one size."""

    samples: npt.NDArray[np.float32]
    window: int
    query: str
    clock: str

    def run(self, times: int) -> tuple[Trial, int]:
        """Play it the given number of times; return the time and the bytes that the manager copied."""
        memory, operators = QUERIES[self.query]
        q = xs.Query(self.query)
        source = xs.io.array(self.samples, 44_100.0, self.window, repeat=times)
        out = operators(q.source(source)).count()
        run, trial = Engine("df", memory, clock=self.clock, fuse=False).timed_run(q)
        windows = len(self.samples) // self.window * times
        if run[out] != windows:
            raise AssertionError(f"{self.query}: {run[out]:,} windows came out, not {windows:,}")
        return trial, run.memory.bytes_copied

    def repetitions(self, seconds: float) -> int:
        """The number of repetitions for a trial of the given length."""
        self.run(1)
        return repetitions(lambda times: self.run(times)[0], seconds)


def measure(scale: Scale) -> Iterator[Row]:
    """Every query with every window, in alternation; costs are differences within one trial."""
    check_square()
    # Plus and minus one: squares of squares stay finite.
    samples = np.where(np.arange(SAMPLES) % 3, 1, -1).astype(np.float32)
    played = {(w, name): Played(samples, w, name, scale.clock) for w in WINDOWS for name in QUERIES}
    scale.progress.begin(len(played), "preparation")
    times = {}
    for key, each in played.items():
        times[key] = each.repetitions(scale.seconds)
        scale.progress.advance(note=key[1])
    scale.progress.begin(len(scale.pending) * len(played), "run")
    for trial in scale.pending:
        for window in WINDOWS:
            took_ns, copies = {}, 0.0
            for name in QUERIES:
                found, copied_bytes = played[window, name].run(times[window, name])
                windows = found.samples / window
                took_ns[name] = found.seconds * 1e9 / windows
                if name == "copied":
                    copies = copied_bytes / found.samples / samples.itemsize
                scale.progress.advance(note=f"{name}, {window} samples")
            cost_ns = {
                "copy": (took_ns["copied"] - took_ns["passed"]) / copies,
                "fft": took_ns["transformed"] - took_ns["nothing"],
                "square": (took_ns["squared"] - took_ns["passed"]) / CHAIN,
                "dot": (took_ns["multiplied"] - took_ns["passed"]) / CHAIN,
            }
            for operation in OPERATIONS:
                yield {
                    "operation": operation, "window": window, "trial": trial,
                    "ns_per_window": cost_ns[operation], "copies_per_window": copies,
                    "pass_ns": took_ns["passed"] / CHAIN,
                }  # fmt: skip


def check_square() -> None:
    """Check that the kernel squares and keeps the type of its input."""
    samples = np.arange(8, dtype=np.float32)
    q = xs.Query()
    out = q.source(xs.io.array(samples, 1.0, window=8)).map(square).collect()
    found = np.asarray(q.run()[out][0])
    if found.dtype != np.float32 or not np.array_equal(found, samples * samples):
        raise AssertionError(f"{samples} squared is not {found}")


def find(rows: Sequence[Row]) -> Finding:
    """Compare the operations by their fastest trials, which are the least disturbed."""
    cost_ns: dict[tuple[str, int], float] = {}
    for row in rows:
        key = (row["operation"], row["window"])
        cost_ns[key] = min(cost_ns.get(key, np.inf), max(float(row["ns_per_window"]), 0.1))
    windows = sorted({window for _, window in cost_ns})
    over = {
        (other, w): cost_ns["copy", w] / cost_ns[other, w]
        for other in OPERATIONS
        if other != "copy"
        for w in windows
    }
    figures = [
        Figure(f"a copy over {OPERATIONS[other]}, {TYPICAL:,} samples ({paper})",
               over[other, TYPICAL], "times", ceiling=ceiling)
        for other, paper, ceiling in (
            ("fft", "paper: insignificant", 0.25), ("square", "paper about 10", None),
            ("dot", "paper about 10", None),
        )
    ]  # fmt: skip
    table = [
        (f"{w:,}", *(f"{cost_ns[operation, w]:,.0f}" for operation in OPERATIONS),
         *(f"{over[other, w]:.2f}" for other in OPERATIONS if other != "copy"))
        for w in windows
    ]  # fmt: skip
    columns = (
        "samples",
        *(f"{name}, ns" for name in OPERATIONS.values()),
        *(f"copy over {name}" for other, name in OPERATIONS.items() if other != "copy"),
    )
    return Finding(figures, columns, table, _text(windows, cost_ns, over, rows))


def _text(
    windows: Sequence[int],
    cost_ns: dict[tuple[str, int], float],
    over: dict[tuple[str, int], float],
    rows: Sequence[Row],
) -> str:
    """The conclusions from the costs."""

    def ratios(other: str) -> str:
        return listed([f"{over[other, w]:.2f}" for w in windows])

    def costlier(other: str) -> str:
        found = [f"{w:,}" for w in windows if over[other, w] > 1]
        return (
            f"costs more with windows of {listed(found)} samples" if found else "never costs more"
        )

    pass_ns = min(float(row["pass_ns"]) for row in rows)
    copy_ns = cost_ns["copy", TYPICAL]
    return f"""
With windows of {listed([f"{w:,}" for w in windows])} samples, a copy takes {ratios("fft")} times as long as Fourier transforms of {TRANSFORM} points
of the same samples. As in the paper, a copy is cheap compared with a heavy operation.

Compared with X * X sample by sample, a copy {costlier("square")}: {ratios("square")} times as much. Compared with the dot product, it {costlier("dot")}:
{ratios("dot")} times as much. The paper has a factor of about {PAPERS_RATIO:g}. A vector unit multiplies as fast as the cache delivers samples, so X * X is limited by
reading and writing, like a copy, and not by its arithmetic.

Passing a segment by reference takes {pass_ns:,.1f} ns for any width. A copy of {TYPICAL:,} samples takes {copy_ns:,.0f} ns, {copy_ns / pass_ns:,.0f} times as long.
This confirms the paper's conclusion that fine-grained operators need a cheaper way to pass segments.
"""


EXPERIMENT = Experiment(
    "copycost",
    "Section III.B.1: a copy of a segment, an FFT, and X * X",
    """
To establish the overhead of copying, the cost of creating a copy of a SigSeg is compared with two common signal processing operations, FFT and
X * X (section III.B.1). The cost of a copy is insignificant beside heavier algorithms such as a 256-point FFT, but consistently
dwarfs X * X by a factor of 10. This suggests that a lighter-weight method of passing SigSegs is required to support fine-grained
modularity in the query plan.
""",
    measure,
    (
        Plot(
            "Cost of one operation on a window", "window", "ns_per_window", ("operation",),
            "ns per window", "samples in a window", {}, log_x=True, log_y=True,
        ),
    ),
    find,
)  # fmt: skip
