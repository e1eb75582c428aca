"""Cache misses of the schedulers on EngineBench: by `perf` where it works, by callgrind elsewhere.

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
from xstream.bench.report import Figure
from xstream.bench.wording import listed

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[2] / "xstream"
#: What runs a plan; the sources and sinks above need the headers of Python.
ROOMS = ("sigseg", "engine", "sched", "kernels", "ops")
EVENTS = ("instructions", "L1-dcache-load-misses", "L1-icache-load-misses")
#: A processor of the paper's time had half of this; what perf counts is this machine's.
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
    """Counts of the machine itself; None where it does not tell."""
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
    """Counts of simulated caches, of the run alone."""
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
    """Misses by hop, for every scheduler."""
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
                    **{f"{what}_a_hop": count / hops for what, count in counts.items()},
                }  # fmt: skip


def find(rows: Sequence[Row]) -> Finding:
    """Who misses what."""
    by = {
        what: {key[0]: mean for key, (mean, _) in summary(rows, ["scheduler"], what).items()}
        for what in ("instructions_a_hop", "data_misses_a_hop", "instruction_misses_a_hop")
    }
    data, code = by["data_misses_a_hop"], by["instruction_misses_a_hop"]
    figures = [
        Figure("L1 data misses, fifo over rtc (paper 47)", data["fifo"] / max(data["rtc"], 1e-9), "times"),
        Figure("L1 data misses, df over fifo (paper about 1)", data["df"] / max(data["fifo"], 1e-9), "times"),
        Figure("instructions, fifo over df", by["instructions_a_hop"]["fifo"] / by["instructions_a_hop"]["df"], "times"),
    ]  # fmt: skip
    table = [
        (name, f"{by['instructions_a_hop'][name]:.1f}", f"{data[name]:.3f}", f"{code[name]:.5f}")
        for name in xs.SCHEDULER_NAMES
    ]
    columns = (
        "scheduler",
        "instructions a hop",
        "L1 data misses a hop",
        "L1 instruction misses a hop",
    )
    how = rows[0]["by"]
    work = by["instructions_a_hop"]
    fewer = [f"`{n}`" for n in ("rtc", "fifo-slice") if data[n] < data["fifo"] / 2]
    fewest, most_code = min(work, key=lambda n: work[n]), max(code.values())
    little = "next to none" if most_code < 0.01 else f"at most {most_code:.2f} a hop"
    text = f"""
Counted by {how}, over a chain of {OPERATORS:,} pass-through operators, in the run alone. `rtc` and `fifo-slice` run what waits for one
operator before they go on: {data["rtc"]:.2f} and {data["fifo-slice"]:.2f} data misses a hop, against {data["fifo"]:.2f} of `fifo`, which takes one tuple of
each queue in turn; {listed(fewer) + (" misses" if len(fewer) == 1 else " miss") if fewer else "neither misses"} less than half as often as `fifo`. `df` has {data["df"]:.2f}: every hop
touches the data of another operator, and those of a thousand do not fit 32 KB. It takes {work["df"]:.0f} instructions a hop against {work["fifo"]:.0f} of `fifo`,
and no tuple is written to a queue and read again; `{fewest}` takes the fewest.

Instruction misses are {little} under any scheduler: the engine and a pass-through operator, which all
thousand share, are smaller than the cache. The paper's factor of 20 has no counterpart here for that reason; how large its operators
were it does not say.
"""
    return Finding(figures, columns, table, text)


EXPERIMENT = Experiment(
    "cache",
    "Cache behaviour of the schedulers on EngineBench",
    """
EngineBench is a thousand pass-through operators (section III.C.3). Under FIFO the rate of misses in the L1 data cache is
about 47 times that of RTC, and that of L1 instruction cache misses 20 times. DF has about half the instruction misses of FIFO,
and as many data misses, because it switches rapidly between operators; it is up to 5.8 times as fast all the same.
""",
    measure,
    (
        Plot(
            "L1 data cache misses",
            "scheduler",
            "data_misses_a_hop",
            ("by",),
            "misses a hop",
            "",
            {},
            kind="bars",
        ),
        Plot(
            "Instructions",
            "scheduler",
            "instructions_a_hop",
            ("by",),
            "instructions a hop",
            "",
            {},
            kind="bars",
        ),
    ),
    find,
)
