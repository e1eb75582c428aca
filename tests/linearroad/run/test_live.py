"""The live view of Linear Road: the same answers, and the road that the answers are about."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from linearroad.run.job import RunOptions, run
from linearroad.tables.history import History

import xstream as xs
from tests.apps.command import call
from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario
from xstream.live.recording import Recording

MAPS = {"speed eastbound", "speed westbound", "toll eastbound", "toll westbound"}


def columns(path: Path) -> dict[str, dict[int, list[list[float]]]]:
    """By heat map and minute: values and marks."""
    found: dict[str, dict[int, list[list[float]]]] = {}
    recording = Recording(path)
    for number in range(recording.frames):
        for name, update in recording.frame(number).get("panels", {}).items():
            for minute, values, marks in update.get("columns", ()):
                found.setdefault(name, {})[minute] = [values, marks]
    return found


@pytest.mark.parametrize("rules", ["paper", "brandeis", "walmart", "thesis"])
def test_answers_are_those_without_a_live_view(
    directory: Path, history: History, tmp_path: Path, rules: str
) -> None:
    plain, shown = tmp_path / "plain", tmp_path / "shown"
    run(directory, plain, history, RunOptions(rules))
    live = xs.Live(page=False, record=tmp_path / "run.live")
    run(directory, shown, history, RunOptions(rules), live=live)
    assert (shown / "output.csv").read_bytes() == (plain / "output.csv").read_bytes()
    assert set(columns(tmp_path / "run.live")) == MAPS


def test_tolls_and_speeds_of_the_road_are_those_of_the_notifications(
    directory: Path, case: Scenario, history: History, tmp_path: Path
) -> None:
    live = xs.Live(page=False, record=tmp_path / "run.live")
    run(directory, tmp_path / "out", history, RunOptions(), live=live)
    road = columns(tmp_path / "run.live")
    rows, _ = reference.parse(case.text)
    reports = [row for row in rows if row.type == 0]
    known = Counter((row.vid, row.time) for row in reports)  # of several, it is not known which
    where = {(r.vid, r.time): r for r in reports if r.xway == 0 and known[r.vid, r.time] == 1}
    compared = 0
    for line in (tmp_path / "out" / "output.csv").read_text().splitlines():
        kind, *fields = line.split(",")
        if kind != "0":
            continue
        vid, time, lav, toll = (int(fields[place]) for place in (0, 1, 3, 4))
        row = where.get((vid, time))
        if row is None:
            continue
        way = ("eastbound", "westbound")[row.dir]
        speeds, _ = road[f"speed {way}"][time // 60]
        tolls, _ = road[f"toll {way}"][time // 60]
        assert speeds[row.seg] == (lav if lav > 0 else None), line
        assert tolls[row.seg] == toll, line
        compared += 1
    assert compared > 100


def test_a_paced_run_shows_response_times(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = tmp_path / "run.live"
    assert call(
        monkeypatch, "linearroad", "run", "--input", directory, "--out", tmp_path / "out",
        "--speed", 5000, "--live-record", file, "--watch", "--live-port", 0,
    ) == 0  # fmt: skip
    assert "live view: http://127.0.0.1:" in capsys.readouterr().err
    recording = Recording(file)
    rows = [
        recording.frame(number).get("panels", {}).get("response times", {}).get("rows")
        for number in range(recording.frames)
    ]
    assert [row for row in rows if row][-1][0][0] == "toll notifications"


def test_checkpoints_go_on_with_and_without_a_live_view(
    directory: Path, history: History, tmp_path: Path
) -> None:
    live = xs.Live(page=False, record=tmp_path / "run.live")
    options = RunOptions(checkpoint_s=0.05)
    run(directory, tmp_path / "out", history, options, live=live)
    assert not MAPS & set(columns(tmp_path / "run.live"))
    assert json.loads((tmp_path / "run.live").read_text().splitlines()[0])["query"] == "linear road"


def test_wrong_ports_are_refused(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    wanted = ("run", "--input", directory, "--out", tmp_path / "out", "--live-port", 70_000)
    assert call(monkeypatch, "linearroad", *wanted) == 2
    assert "--live-port must be from 0 to 65,535" in capsys.readouterr().err
