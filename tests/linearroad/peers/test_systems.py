"""Every system that is found answers rows full of rare cases as xstream does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from linearroad.driver.job import drive
from linearroad.driver.results import DriveOptions
from linearroad.generation.layout import Layout
from linearroad.peers.process import running
from linearroad.peers.registry import SYSTEMS
from linearroad.peers.system import Task
from linearroad.run.job import RunOptions, run
from linearroad.tables.history import History

from tests.linearroad.engine import history_of
from tests.linearroad.service.test_serve import without_emit
from tests.reference.linearroad_strategies import Scenario

MINUTES = 12
SLOW = ("spark",)  # its micro-batches take longer than the stream
PEERS = [
    pytest.param(
        name,
        marks=[getattr(pytest.mark, name.split("-")[0]), *[pytest.mark.slow] * (name in SLOW)],
    )
    for name in SYSTEMS
    if name != "xstream"
]


@pytest.fixture(scope="module")
def base(directory: Path, case: Scenario) -> Path:
    """The scenario's directory with a store of its history, as `generate --history` writes it."""
    known = history_of(case.tolls, case.segment_history)
    for xway in range(2):
        store = Layout(directory).store(xway)
        store.mkdir(parents=True)
        vids, tolls = known.tolls[xway]
        np.save(store / "toll_vids.npy", vids)
        np.save(store / "tolls.npy", tolls)
        np.save(store / "segment_sums.npy", known.sums[xway])
    return directory


@pytest.fixture(scope="module")
def right(base: Path, history: History, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The answers of xstream."""
    out = tmp_path_factory.mktemp("right")
    run(base, out, history, RunOptions(minutes=MINUTES))
    return without_emit(out / "output.csv")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that servers of other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.parametrize("name", PEERS)
def test_answers_are_those_of_xstream(
    name: str, base: Path, right: list[str], folder: Path, tmp_path: Path
) -> None:
    system = SYSTEMS[name]
    if missing := system.missing():
        pytest.skip(missing)
    vehicles = json.loads((base / "manifest.json").read_text())["totals"]["vehicles"]
    task = Task(base, 2, 2, vehicles, folder)
    options = DriveOptions(
        system.wire, speed=20_000.0, minutes=MINUTES, marks=system.marks, quiet_s=60.0
    )
    with running(system.program(task), tmp_path / "system.log") as program:
        program.wait_until_it_listens(120.0)
        drive(base, program.address, tmp_path / "out", options)
    kept = [line for line in right if int(line[0]) not in system.leaves_out]
    assert without_emit(tmp_path / "out" / "output.csv") == kept, program.last_words()
    kinds = {line[0] for line in right}
    assert kinds == set("01234"), "the rows must ask for answers of every kind"
