"""Checkpoints on shared storage: what another machine goes on from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from linearroad.generation.manifest import Entry, write_json
from linearroad.run import shipment as shipments
from linearroad.run.job import RunOptions, run
from linearroad.run.share import Share, shares_of
from linearroad.run.shipment import Shipment
from linearroad.storage import place
from linearroad.tables.history import History

from xstream.errors import InputError

FILES = {"rejects": "rejects.csv", "answers": "output.csv"}


@pytest.fixture(params=["folder", "uri"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / "shared" if request.param == "folder" else place(f"mock://{tmp_path.name}/s")


def interrupted(directory: Path, out: Path, history: History, shipment: Shipment) -> None:
    """Run with a checkpoint at every opportunity, and copy those that are there."""
    options = RunOptions(checkpoint_s=1e-6)
    shipped = []

    def progress(_: object) -> None:
        shipped.append(shipment.ship())

    run(directory, out, history, options, progress)
    assert any(shipped)


def test_another_machine_goes_on_from_the_copies(
    directory: Path, history: History, tmp_path: Path, shared: Path
) -> None:
    whole, first, second = (tmp_path / name for name in ("whole", "first", "second"))
    run(directory, whole, history, RunOptions())
    first.mkdir()
    interrupted(directory, first, history, Shipment(shared, first, "one", FILES))
    shutil.rmtree(first)  # the machine is lost, with everything on it
    second.mkdir()
    again = Shipment(shared, second, "two", FILES)
    assert again.fetch()
    result = run(directory, second, history, RunOptions(checkpoint_s=60.0, resume=True))
    assert result.checkpoints is not None
    assert result.checkpoints["resumed_from"] is not None
    assert (second / "output.csv").read_bytes() == (whole / "output.csv").read_bytes()
    assert (second / "rejects.csv").read_bytes() == (whole / "rejects.csv").read_bytes()


def test_a_point_that_is_not_whole_is_passed_over(
    directory: Path, history: History, tmp_path: Path
) -> None:
    shared, out, other = tmp_path / "shared", tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    interrupted(directory, out, history, Shipment(shared, out, "one", FILES))
    point: Entry = {
        "sequence": 999, "number": 1, "checkpoint": "two/checkpoint-000001", "pieces": [],
    }  # fmt: skip
    write_json(shared / "two" / "point-000999.json", point)
    found = Shipment(shared, other, "three", FILES)
    assert found.fetch()
    assert found.sequence < 999
    assert not Shipment(tmp_path / "nothing", other, "four", FILES).fetch()


def test_few_points_are_kept(directory: Path, history: History, tmp_path: Path) -> None:
    shared, out = tmp_path / "shared", tmp_path / "out"
    out.mkdir()
    interrupted(directory, out, history, Shipment(shared, out, "one", FILES))
    assert len(list(shared.glob("one/point-*.json"))) <= shipments.KEPT
    assert len(list(shared.glob("one/checkpoint-*"))) <= shipments.KEPT


def manifest_of(folder: Path, expressways: int, **more: int) -> Path:
    folder.mkdir(exist_ok=True)
    parameters = {"expressways": expressways, "minutes": 1, "format": "csv", **more}
    write_json(folder / "manifest.json", {"version": 1, "complete": True, "parameters": parameters})
    return folder


def test_shares_are_groups_as_generated_or_copies_spread_evenly(tmp_path: Path) -> None:
    grouped = manifest_of(tmp_path / "grouped", 8, group=3)
    assert [share.numbers for share in shares_of(grouped, 1, 2, None)] == [
        range(3), range(3, 6), range(6, 8),
    ]  # fmt: skip
    assert [share.files for share in shares_of(grouped, 1, 2, 6)] == [6, 2]
    with pytest.raises(InputError, match="generated with --group 3"):
        shares_of(grouped, 1, 2, 4)
    whole = manifest_of(tmp_path / "whole", 10)
    assert shares_of(whole, 1, 8, None) == [Share(0, 0, 10)]
    spread = shares_of(whole, 10, 4, None)
    assert [(share.first_copy, share.copies) for share in spread] == [
        (0, 2),
        (2, 3),
        (5, 2),
        (7, 3),
    ]
    assert len(shares_of(whole, 10, 4, 20)) == 5
    with pytest.raises(InputError, match="multiple of 10"):
        shares_of(whole, 10, 4, 15)
    with pytest.raises(InputError, match="requires a generated directory"):
        shares_of(whole / "manifest.json", 1, 1, None)
