"""Benchmarks over time: records of a commit, and what has become slower between two of them.

A record has the throughput of several rounds of some benchmarks, the machine, its load and the
commit, and the instructions of the core's paths where valgrind is installed. Two commits are
measured in turns, so that other load affects both; two records are not, so their interval is wider.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from xstream.bench.experiment import mean_and_interval
from xstream.bench.report import machine
from xstream.errors import InputError

__all__ = [
    "BENCHMARKS", "LEAST_CHANGE", "Change", "compare", "instructions", "measure", "read_record",
    "record", "write_record",
]  # fmt: skip

Record = dict[str, Any]
#: What is measured, with its options; each round takes a few seconds.
BENCHMARKS = {
    "passchain": ("--seconds", "0.1"),
    "statfilter": ("--seconds", "0.1", "--megabytes", "0"),
    "silencefilter": ("--seconds", "0.1"),
    "elementwise": ("--seconds", "0.1", "--megabytes", "0"),
    "enginebench": ("--seconds", "0.1", "--scheduler", "df"),
}
TRIALS = 5
#: Smaller changes are not told, and instructions, which hardly vary, change by more than this.
LEAST_CHANGE, LEAST_INSTRUCTIONS = 0.02, 0.01
ROOT = Path(__file__).resolve().parents[2]


class Change(NamedTuple):
    """How much slower the second of two is, as a share, with half of its 95 % interval."""

    name: str
    before: float
    after: float
    slower: float
    half: float
    unit: str

    @property
    def verdict(self) -> str:
        """`slower` or `faster`, if the change is beyond the noise."""
        least = LEAST_INSTRUCTIONS if self.unit == "instructions" else LEAST_CHANGE
        if abs(self.slower) < least or abs(self.slower) <= self.half:
            return "same"
        return "slower" if self.slower > 0 else "faster"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**self._asdict(), "verdict": self.verdict}


def measure(name: str, tree: Path | None = None, cache: Path | None = None) -> float:
    """Samples per second of a benchmark in a process of its own: the median of its trials."""
    environment = dict(os.environ)
    if tree is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(tree), str(tree / "apps")])
    if cache is not None:
        environment["XSTREAM_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-m", "xstream", "bench", name, "--json", "--trials", str(TRIALS),
         *BENCHMARKS[name]],
        capture_output=True, text=True, check=False, env=environment, cwd=tree,
    )  # fmt: skip
    if done.returncode:
        where = f" of {tree.name}" if tree is not None else ""
        raise InputError(f"the benchmark {name}{where} failed: {done.stderr.strip()[-300:]}")
    return float(median(json.loads(done.stdout)["results"][0]["trials"]))


def instructions(tree: Path = ROOT) -> dict[str, Any] | None:
    """The toolchain and the counts of `bench.instructions`; None where they cannot be counted."""
    if not (ROOT / "bench" / "instructions" / "paths.c").exists():
        return None
    done = subprocess.run(
        [sys.executable, "-m", "bench.instructions", "--json", "--root", str(tree)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def record(rounds: int, say: Callable[[str], None], names: Sequence[str] = ()) -> Record:
    """Measure this installation."""
    chosen = list(names) or list(BENCHMARKS)
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        raise InputError(
            f"there is no recorded benchmark {unknown[0]!r}: choose {', '.join(BENCHMARKS)}"
        )
    rates: dict[str, list[float]] = {name: [] for name in chosen}
    loads = [os.getloadavg()[0]]
    for number in range(rounds):
        for name in chosen:
            say(f"round {number + 1} of {rounds}: {name}")
            rates[name].append(measure(name))
        loads.append(os.getloadavg()[0])
    say("counting instructions")
    return {"machine": machine(), "loads": loads, "rates": rates, "instructions": instructions()}


def write_record(folder: Path, found: Record) -> Path:
    """Write a record to a file that is named by date and commit."""
    known = found["machine"]
    date = known["date"].replace(":", "").replace("+0000", "Z")
    path = folder / f"{date}-{known['commit'] or 'unknown'}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"record": found}, indent=1) + "\n")
    return path


def read_record(path: Path) -> Record:
    """Read a record; any other file is an error."""
    try:
        found: Record = json.loads(path.read_text())["record"]
        rates = found["rates"]
        if not all(rates.values()) or not isinstance(found["machine"], dict):
            raise ValueError("it is incomplete")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a record of `xstream bench record`: {error!r}") from error
    return found


def compare(before: Record, after: Record, in_turns: bool) -> list[Change]:
    """The change of everything that both records have, rates first."""
    found = []
    for name, first in before["rates"].items():
        if second := after["rates"].get(name):
            slower, half = slowdown(first, second, in_turns)
            found.append(Change(name, median(first), median(second), slower, half, "samples/s"))
    one, two = before.get("instructions"), after.get("instructions")
    if one and two and one["toolchain"] == two["toolchain"]:
        for name, count in one["counts"].items():
            grown = two["counts"][name] / count - 1
            found.append(Change(name, count, two["counts"][name], grown, 0.0, "instructions"))
    return found


def slowdown(
    before: Sequence[float], after: Sequence[float], in_turns: bool
) -> tuple[float, float]:
    """By what share the second takes longer, and half of the 95 % interval (Student's t).

    The logarithms of the rates are compared: round by round if they were measured in turns, else
    by their means, whose intervals add up in quadrature.

    >>> slower, half = slowdown([100.0, 200.0, 150.0], [50.0, 100.0, 75.0], in_turns=True)
    >>> round(slower, 3), round(half, 3)
    (1.0, 0.0)
    """
    first, second = [math.log(rate) for rate in before], [math.log(rate) for rate in after]
    if in_turns:
        mean, half = mean_and_interval([a - b for a, b in zip(first, second, strict=True)])
    else:
        (one, half_one), (two, half_two) = mean_and_interval(first), mean_and_interval(second)
        mean, half = one - two, math.hypot(half_one, half_two)
    return math.expm1(mean), math.exp(mean) * math.sinh(half)


def differing_machines(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between the machines of two records."""
    keys = ("processor", "cores", "python")
    return [
        f"{key}: {before['machine'].get(key)} and {after['machine'].get(key)}"
        for key in keys
        if before["machine"].get(key) != after["machine"].get(key)
    ]
