"""Cache misses of the schedulers on EngineBench: by `perf`, or else by callgrind.

The core is compiled into a small program without Python, and only the run itself is counted.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import xstream as xs
from xstream.bench.children import run_child
from xstream.bench.experiment import (
    Experiment,
    Finding,
    Plot,
    Row,
    Scale,
    Unavailable,
    summary,
)
from xstream.bench.phrases import listed
from xstream.bench.report import Figure

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[2] / "xstream"
#: The rooms that run a plan. The rooms above need the headers of Python.
ROOMS = ("sigseg", "engine", "sched", "kernels", "ops")
EVENTS = ("instructions", "L1-dcache-load-misses", "L1-icache-load-misses")
#: The caches that callgrind simulates; perf counts those of the machine.
SIMULATED = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")
OPERATORS = 1000


def build(folder: Path) -> Path:
    """The program, compiled like the core itself."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise Unavailable(f"cache needs a C compiler, and {compiler[0]} is not found")
    if not list(CORE.glob("sched/*.c")):
        raise Unavailable(
            "cache compiles the C core, and an installed package has no C sources: run it from a "
            "source tree"
        )
    program = folder / "enginebench"
    core = (path for room in ROOMS for path in sorted((CORE / room).glob("*.c")))
    sources = [*map(str, core), str(HERE / "enginebench.c")]
    done = run_child(
        [*compiler, "-std=gnu11", "-O3", "-g1", "-fno-plt", "-DNDEBUG", "-pthread", *sources, "-o",
         str(program), "-lm"],
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise Unavailable(f"cache could not be compiled by {compiler[0]}: {said}")
    return program


def by_perf(program: Path, scheduler: int, windows: int) -> dict[str, float] | None:
    """Hardware counters; None if they are not available."""
    if shutil.which("perf") is None:
        return None
    done = run_child(
        ["perf", "stat", "-x,", "-e", ",".join(EVENTS), str(program), str(scheduler),
         str(OPERATORS), str(windows)],
    )  # fmt: skip
    found = {}
    for line in done.stderr.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[0].isdecimal():
            found[fields[2].split(":")[0]] = float(fields[0])
    if done.returncode or set(found) != set(EVENTS):
        return None
    return dict(zip(("instructions", "data_misses", "instruction_misses"),
                    (found[event] for event in EVENTS), strict=True))  # fmt: skip


def by_callgrind(program: Path, scheduler: int, windows: int, folder: Path) -> dict[str, float]:
    """Misses of simulated caches during the run."""
    if shutil.which("valgrind") is None:
        raise Unavailable("cache needs perf with hardware counters, or valgrind")
    out = folder / "callgrind.out"
    done = run_child(
        ["valgrind", "--tool=callgrind", "--cache-sim=yes", *SIMULATED, "--toggle-collect=measured",
         f"--callgrind-out-file={out}", str(program), str(scheduler), str(OPERATORS),
         str(windows)],
    )  # fmt: skip
    if done.returncode or not out.is_file():
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"cache could not be counted by valgrind: {said}")
    text = out.read_text()
    names = re.search(r"^events: (.*)$", text, re.M)
    totals = re.search(r"^(?:totals|summary): (.*)$", text, re.M)
    if names is None or totals is None:
        raise Unavailable("cache could not be counted: callgrind gave no totals")
    counts = dict(zip(names.group(1).split(), map(float, totals.group(1).split()), strict=False))
    return {
        "instructions": counts["Ir"],
        "data_misses": counts["D1mr"] + counts["D1mw"],
        "instruction_misses": counts["I1mr"],
    }


def measure(scale: Scale) -> Iterator[Row]:
    """Misses per hop, for every scheduler."""
    windows = 2560 if scale.full else 640
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder)
        works = by_perf(program, 0, 64) is not None
        trials = scale.pending if works else [0]  # callgrind counts the same each time
        scale.progress.begin(len(trials) * len(xs.SCHEDULER_NAMES), "run")
        for trial in trials:
            for number, scheduler in enumerate(xs.SCHEDULER_NAMES):
                found = by_perf(program, number, windows) if works else None
                counts = found or by_callgrind(program, number, windows, folder)
                hops = windows * OPERATORS
                scale.progress.advance(note=scheduler)
                yield {
                    "scheduler": scheduler, "by": "perf" if works else "callgrind",
                    "operators": OPERATORS, "windows": windows, "trial": trial,
                    **{f"{what}_per_hop": count / hops for what, count in counts.items()},
                }  # fmt: skip


def find(rows: Sequence[Row]) -> Finding:
    """The misses of the schedulers compared."""
    by = {
        what: {key[0]: mean for key, (mean, _) in summary(rows, ["scheduler"], what).items()}
        for what in ("instructions_per_hop", "data_misses_per_hop", "instruction_misses_per_hop")
    }
    data, code = by["data_misses_per_hop"], by["instruction_misses_per_hop"]
    figures = [
        Figure("L1 data misses, fifo over rtc (paper 47)", data["fifo"] / max(data["rtc"], 1e-9), "times"),
        Figure("L1 data misses, df over fifo (paper about 1)", data["df"] / max(data["fifo"], 1e-9), "times"),
        Figure("instructions, fifo over df", by["instructions_per_hop"]["fifo"] / by["instructions_per_hop"]["df"], "times"),
    ]  # fmt: skip
    table = [
        (name, f"{by['instructions_per_hop'][name]:.1f}", f"{data[name]:.3f}", f"{code[name]:.5f}")
        for name in xs.SCHEDULER_NAMES
    ]
    columns = (
        "scheduler",
        "instructions per hop",
        "L1 data misses per hop",
        "L1 instruction misses per hop",
    )
    how = rows[0]["by"]
    work = by["instructions_per_hop"]
    fewer = [f"`{n}`" for n in ("rtc", "fifo-slice") if data[n] < data["fifo"] / 2]
    fewest, most_code = min(work, key=lambda n: work[n]), max(code.values())
    little = "fewer than 0.01" if most_code < 0.01 else f"up to {most_code:.2f}"
    text = f"""
Counted by {how} for a chain of {OPERATORS:,} pass-through operators. `rtc` and `fifo-slice` process all tuples that wait for one
operator before they switch to another: {data["rtc"]:.2f} and {data["fifo-slice"]:.2f} data misses per hop, compared with {data["fifo"]:.2f} of `fifo`, which takes one tuple of
each queue in turn; {listed(fewer) + (" misses" if len(fewer) == 1 else " miss") if fewer else "neither misses"} less than half as often as `fifo`. `df` has {data["df"]:.2f}: every hop
accesses the data of another operator, and the data of a thousand operators do not fit into 32 KB. It executes {work["df"]:.0f} instructions per hop, `fifo` {work["fifo"]:.0f},
because no tuple is written to a queue and read again. `{fewest}` executes the fewest.

There are {little} instruction misses per hop under every scheduler, because the code of the engine and of the pass-through operator
fits into the cache. The paper has a factor of 20 between FIFO and RTC; it does not state the size of its operators.
"""
    return Finding(figures, columns, table, text)


EXPERIMENT = Experiment(
    "cache",
    "Cache behaviour of the schedulers on EngineBench",
    """
EngineBench is a thousand pass-through operators (section III.C.3). Under FIFO the rate of misses in the L1 data cache is
about 47 times that of RTC, and that of L1 instruction cache misses 20 times. DF has about half the instruction misses of FIFO,
and as many data misses, because it switches rapidly between operators; it is still up to 5.8 times as fast.
""",
    measure,
    (
        Plot(
            "L1 data cache misses",
            "scheduler",
            "data_misses_per_hop",
            ("by",),
            "misses per hop",
            "",
            {},
            kind="bars",
        ),
        Plot(
            "Instructions",
            "scheduler",
            "instructions_per_hop",
            ("by",),
            "instructions per hop",
            "",
            {},
            kind="bars",
        ),
    ),
    find,
)
