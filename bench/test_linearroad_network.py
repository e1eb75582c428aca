"""Linear Road over the network: `drive` and `serve` on one machine, at real time.

The input is a generated directory named by XSTREAM_TRAFFIC: rush-hour traffic with history, such as
`xstream linearroad generate --expressways 10 --from-minute 150 --minutes 6 --history --out DIR`.
XSTREAM_MINUTES sets how many minutes are driven (4). Answers are compared with those of `run` by
digest. To run only this file: `make bench ONLY=network`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from linearroad.generation.manifest import read_manifest
from linearroad.output.digests import read_digests

from bench.report import Report

COMMAND = [sys.executable, "-c", "import sys; from xstream.cli import main; sys.exit(main())"]
MINUTES = int(os.environ.get("XSTREAM_MINUTES", "4"))


@pytest.fixture(scope="module")
def traffic() -> Path:
    named = os.environ.get("XSTREAM_TRAFFIC")
    if not named:
        pytest.skip("needs XSTREAM_TRAFFIC, rush-hour traffic with history")
    return Path(named)


def xstream(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [*COMMAND, "linearroad", *map(str, arguments)]
    return subprocess.Popen(command, **options)


@pytest.fixture(scope="module")
def expected(traffic: Path, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The digests of a run over the originals, by minute and kind."""
    out = tmp_path_factory.mktemp("run")
    options = ("--history", traffic, "--minutes", MINUTES, "--answers", "digest", "--json")
    run = xstream("run", "--input", traffic, "--out", out, *options, stdout=subprocess.DEVNULL)
    assert run.wait() == 0
    originals = int(read_manifest(traffic)["parameters"]["expressways"])
    return read_digests(out / "digests.parquet", originals, MINUTES).sum(axis=0, dtype=np.uint64)


def driven(traffic: Path, wire: str, expressways: int, out: Path) -> dict[str, Any]:
    """The summary of a drive, with the CPU time of both processes in seconds."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    common = ("--wire", wire, "--expressways", expressways)
    with xstream("serve", "--listen", place, "--history", traffic, "--once", *common) as server:
        try:
            options = ("--minutes", MINUTES, "--answers", "digest", "--wait-s", 120, "--json")
            driver = xstream("drive", "--input", traffic, "--to", place, "--out", out, *common,
                             *options, stdout=subprocess.DEVNULL)  # fmt: skip
            process, used = psutil.Process(server.pid), 0.0
            while driver.poll() is None:
                used = sum(process.cpu_times()[:2])
                try:
                    driver.wait(1.0)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            server.terminate()
    return {**json.loads((out / "summary.json").read_text()), "server_cpu_s": used}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("wire", "expressways"), [("arrow", 1000), ("flat", 100)])
def test_network_every_answer_is_back_within_its_limit(
    benchmark, report: Report, traffic: Path, expected: np.ndarray, tmp_path: Path, wire: str,
    expressways: int,
) -> None:  # fmt: skip
    found = benchmark.pedantic(
        lambda: driven(traffic, wire, expressways, tmp_path / wire), rounds=1, iterations=1
    )
    originals = int(read_manifest(traffic)["parameters"]["expressways"])
    copies = expressways // originals
    digests = read_digests(tmp_path / wire / "digests.parquet", copies, MINUTES)
    assert (digests == expected).all(), "answers differ from those of `run`"
    worst = max(figures["worst"] for figures in found["response_s"].values())
    report.figure(
        f"L = {expressways:,} over the {wire} wire, {MINUTES} min at speed 1",
        f"slowest answer {worst:.2f} s, {found['late']:,} late",
        f"{found['rows_per_second'] / 1e6:.2f} M rows/s, server {found['server_cpu_s']:.0f} s CPU",
        "",
        "none late",
        found["passed"],
    )
