"""The Linear Road queries: reports per second, memory, and the cost of options.

Every measurement is a separate process (`bench.linearroad_run`), pinned for single-core figures.
The input is a generated directory named by XSTREAM_TRAFFIC (`xstream linearroad generate
--expressways 10 --minutes 180 --history --out DIR` for the full size), or one expressway of three
hours, which is generated first. To run only this file:
`python -m pytest bench/test_linearroad_queries.py --benchmark-enable --benchmark-only`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest

import xstream as xs
from bench.report import ROOT, Report

MILLION = 1e6
LEAST_PARQUET, LEAST_FLAT, LEAST_ALONE = 5.0, 1.5, 12.0  # million reports/s
LEAST_GAIN = 1.7  # two threads against one
MOST_SLOWER = 1.2  # with one bad row in a hundred
VEHICLE_BYTES, FIXED_BYTES = 64, 64 * 2**20
RUNS = 3
FLAT_ROWS = 3_000_000


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("XSTREAM_TRAFFIC")
    if named:
        return Path(named)
    out = tmp_path_factory.mktemp("generated") / "traffic"
    code = "import sys; from xstream.cli import main; sys.exit(main())"
    command = ["linearroad", "generate", "--expressways", "1", "--minutes", "180", "--history"]
    subprocess.run(
        [sys.executable, "-c", code, *command, "--out", str(out)], check=True, capture_output=True
    )
    return out


@pytest.fixture(scope="module")
def expressway(traffic: Path) -> Path:
    return Layout(traffic).traffic(0, "parquet")


@pytest.fixture(scope="module")
def flat(expressway: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows as a flat file."""
    path = tmp_path_factory.mktemp("flat") / "rows.csv"
    options = pacsv.WriteOptions(include_header=False)
    file = pq.ParquetFile(expressway)
    with pacsv.CSVWriter(path, file.schema_arrow, write_options=options) as writer:
        for batch in file.iter_batches(1 << 18):
            writer.write_batch(batch)
    return path


def measured(source: Path, *options: str | Path) -> dict[str, float]:
    """Measure runs in a separate process."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "bench.linearroad_run", str(source), out]
        done = subprocess.run(
            [*command, *map(str, options)], cwd=ROOT, check=True, capture_output=True, text=True
        )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def best_in_turns(*cases: tuple[Path, tuple[str | Path, ...]]) -> list[dict[str, float]]:
    """The best of several measurements of each case, alternating, as machine speed varies."""
    best: list[dict[str, float]] = [{} for _ in cases]
    for _ in range(RUNS):
        for known, (source, options) in zip(best, cases, strict=True):
            found = measured(source, *options)
            for key, value in found.items():
                known[key] = min(known.get(key, value), value)
    return best


def rates(found: dict[str, float]) -> tuple[float, str]:
    """Million reports per wall-clock second, and a text with wall-clock and CPU rates."""
    by_wall, by_cpu = (found["reports"] / found[key] / MILLION for key in ("wall_s", "cpu_s"))
    return by_wall, f"{by_wall:.2f} M/s ({by_cpu:.2f} by CPU time)"


@pytest.mark.timeout(1800)
def test_reports_a_second_on_one_core(
    benchmark, report: Report, traffic: Path, expressway: Path, flat: Path
) -> None:
    one_core = ("--core", "0", "--runs", str(RUNS), "--history", traffic)
    cases = {
        "Parquet to Parquet": (expressway, LEAST_PARQUET, ("--form", "parquet")),
        "flat file to flat file": (flat, LEAST_FLAT, ("--form", "csv")),
        "operators alone, from memory": (expressway, LEAST_ALONE, ("--alone",)),
    }

    def all_cases() -> dict[str, dict[str, float]]:
        return {
            name: measured(source, *one_core, *options)
            for name, (source, _, options) in cases.items()
        }

    found = benchmark.pedantic(all_cases, rounds=1, iterations=1)
    for name, (_, least, _) in cases.items():
        rate, words = rates(found[name])
        report.figure(f"Linear Road, {name}", words, "", "", f">= {least} M/s", rate >= least)
    vehicles = len({*pq.read_table(expressway, columns=["vid"])["vid"].to_numpy()})
    risen = found["Parquet to Parquet"]["risen_bytes"]
    most = FIXED_BYTES + VEHICLE_BYTES * vehicles
    report.figure(
        "memory above warm-up", f"{risen / 2**20:.1f} MiB", f"{vehicles:,} vehicles", "",
        f"<= {most / 2**20:.1f} MiB", risen <= most,
    )  # fmt: skip


@pytest.mark.timeout(1800)
def test_two_threads_on_ten_expressways(benchmark, report: Report, traffic: Path) -> None:
    expressways = int(read_manifest(traffic)["parameters"]["expressways"])
    if expressways < 2 or (os.cpu_count() or 1) < 2:
        pytest.skip("needs two cores and XSTREAM_TRAFFIC with several expressways")
    options = ("--history", traffic, "--minutes", "90")

    def both() -> list[dict[str, float]]:
        return best_in_turns(
            (traffic, (*options, "--core", "0")), (traffic, (*options, "--threads", "2"))
        )

    one, two = (rates(found) for found in benchmark.pedantic(both, rounds=1, iterations=1))
    gain = two[0] / one[0]
    report.figure(
        f"two threads on {expressways} expressways", two[1], f"one: {one[1]}", f"{gain:.2f}",
        f">= {LEAST_GAIN}", gain >= LEAST_GAIN,
    )  # fmt: skip


@pytest.mark.timeout(1800)
def test_what_managers_and_schedulers_cost(
    benchmark, report: Report, traffic: Path, expressway: Path
) -> None:
    def table() -> list[list[str]]:
        lines = []
        for memory in xs.MANAGER_NAMES:
            line = [memory]
            for scheduler in xs.SCHEDULER_NAMES:
                found = measured(
                    expressway, "--core", "0", "--minutes", "90", "--history", traffic,
                    "--memory", memory, "--scheduler", scheduler,
                )  # fmt: skip
                line.append(f"{found['reports'] / found['cpu_s'] / MILLION:.2f}")
            lines.append(line)
        return lines

    lines = benchmark.pedantic(table, rounds=1, iterations=1)
    columns = ["million reports a CPU-second", *xs.SCHEDULER_NAMES]
    report.table("Linear Road, the first 90 minutes, Parquet to Parquet", columns, lines)


BAD_ROWS = (
    b"", b"0,1,2", b"0,x" + b",1" * 13, b"0,99999999999" + b",1" * 13, b"7" + b",1" * 14,
    b"0,5,-7,50,0,1,0,2,11000" + b",-1" * 6, b"0,5,7,50,0,9,0,2,11000" + b",-1" * 6,
    b"0,0,7,50,0,1,0,2,11000" + b",-1" * 6,
)  # fmt: skip


@pytest.mark.timeout(1800)
def test_one_bad_row_in_a_hundred(
    benchmark, report: Report, flat: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clean = tmp_path_factory.mktemp("clean") / "rows.csv"
    dirty = tmp_path_factory.mktemp("dirty") / "rows.csv"
    with flat.open("rb") as rows, clean.open("wb") as good, dirty.open("wb") as mixed:
        for number, row in enumerate(rows):
            if number == FLAT_ROWS:
                break
            good.write(row)
            mixed.write(row)
            if number % 100 == 99:
                mixed.write(BAD_ROWS[(number // 100) % len(BAD_ROWS)] + b"\n")

    def both() -> list[dict[str, float]]:
        options = ("--core", "0", "--form", "csv")
        return best_in_turns((clean, options), (dirty, options))

    alone, beside = benchmark.pedantic(both, rounds=1, iterations=1)
    assert alone["reports"] == beside["reports"]
    slower = beside["cpu_s"] / alone["cpu_s"]
    report.figure(
        "a flat file with 1 % bad rows of eight kinds", f"{beside['cpu_s']:.2f} s of CPU",
        f"without: {alone['cpu_s']:.2f} s", f"{slower:.2f}", f"<= {MOST_SLOWER}",
        slower <= MOST_SLOWER,
    )  # fmt: skip
