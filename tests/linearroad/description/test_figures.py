"""`describe` counts as the rules do, and its page is self-contained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from linearroad.description import _kernels as k
from linearroad.description.figures import SURVEYED, check_files, empty_survey, measure_expressway
from linearroad.description.page import rows_beside_paper, write_page
from linearroad.files import TRAFFIC_COLUMNS, table_writer
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest
from linearroad.traffic.simulation import Expressway, unpack

from tests.apps.command import call
from tests.linearroad import reference
from xstream.errors import InputError


def stream(seed: int, seconds: int, crowd: float) -> dict[str, np.ndarray]:
    """Position reports of one expressway, a trip being a vehicle."""
    road = Expressway(seed, 0, seconds, demand_share=crowd)
    reports = road.advance(seconds)
    fields = unpack(reports.packed)
    time = np.repeat(np.arange(seconds), reports.rows_by_second)
    return {
        "type": np.zeros(len(time), np.int32),
        "time": time.astype(np.int32),
        "vid": np.ascontiguousarray(fields.trip),
        "spd": fields.spd,
        "lane": fields.lane,
        "dir": fields.dir,
        "seg": fields.pos // 5280,
        "pos": fields.pos,
    }


@pytest.mark.slow
def test_counts_are_those_of_the_rules() -> None:
    # Crowded enough for tolls, long enough for an accident to be detected.
    columns = stream(seed=3, seconds=1080, crowd=3.0)
    survey = empty_survey(1080, int(columns["vid"].max()) + 1)
    k.survey_rows(survey, *(columns[name] for name in SURVEYED))
    names = list(columns)
    rows = [
        dict(zip(names, row, strict=True)) for row in np.stack(list(columns.values()), 1).tolist()
    ]
    expected = reference.notifications(rows)
    assert expected["paid"] > 0
    assert expected["alerts"] > 0
    assert survey.tally[k.NOTIFICATIONS] == expected["notifications"]
    assert survey.tally[k.PAID] == expected["paid"]
    assert survey.tally[k.ALERTS] == expected["alerts"]


@pytest.mark.spark
def test_the_page_stands_alone_and_names_the_papers_figures(
    generated: Path, tmp_path: Path
) -> None:
    manifest = read_manifest(generated)
    figures = measure_expressway(generated, manifest, 0)
    table = pq.read_table(Layout(generated).traffic(0, "parquet"), partitioning=None)
    assert figures.reports == int((table["type"].to_numpy() == 0).sum())
    assert figures.reports == figures.rate.sum()
    page = tmp_path / "page.html"
    write_page(page, figures, manifest["simulated"][0]["accidents"])
    text = page.read_text()
    assert 'src="http' not in text
    for name, here, paper in rows_beside_paper(figures):
        assert name in text
        assert here in text
        assert paper in text


@pytest.mark.spark
def test_damage_is_found_by_the_checksums(generated: Path) -> None:
    manifest = read_manifest(generated)
    assert check_files(generated, manifest) == 3
    wrong = json.loads(json.dumps(manifest))
    wrong["traffic"][1]["sha256"] = "0" * 64
    with pytest.raises(InputError, match="xway-00001"):
        check_files(generated, wrong)
    with pytest.raises(InputError, match="expressways 0 to 2"):
        measure_expressway(generated, manifest, 3)


@pytest.fixture
def promised(tmp_path: Path) -> Path:
    """A directory with a manifest and without traffic."""
    parameters = {"expressways": 2, "minutes": 3, "format": "parquet"}
    manifest = {"version": 1, "complete": True, "parameters": parameters}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--html", "."], ". cannot be written: it is a directory"),
        (["--html", "manifest.json/page.html"], "manifest.json is not a directory"),
        (["--xway", "99"], "has expressways 0 to 1, not 99: choose another --xway"),
        (["--xway", "-1"], "has expressways 0 to 1, not -1"),
        ([], "is missing: run `linearroad generate` again"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_before_the_traffic_is_read(
    promised: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(promised)
    assert call(monkeypatch, "linearroad", "describe", ".", *options) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told.splitlines()) == 1


def test_damaged_traffic_is_one_sentence(promised: Path) -> None:
    layout = Layout(promised)
    for path in (layout.traffic(0, "parquet"), layout.vids(0)):
        path.parent.mkdir(parents=True, exist_ok=True)
    np.save(layout.vids(0), np.arange(3))
    layout.traffic(0, "parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"parquet cannot be read: .*; generate it again"):
        measure_expressway(promised, read_manifest(promised), 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("vid", 3), ("vid", -1), ("time", 180), ("lane", 5), ("dir", 2), ("seg", 100), ("pos", 2**30)],
)
def test_rows_that_there_is_no_place_for_are_refused(promised: Path, name: str, value: int) -> None:
    layout = Layout(promised)
    for path in (layout.traffic(0, "parquet"), layout.vids(0)):
        path.parent.mkdir(parents=True, exist_ok=True)
    np.save(layout.vids(0), np.arange(3))
    row = dict.fromkeys(TRAFFIC_COLUMNS, 1) | {"type": 0}
    rows = [list(each.values()) for each in (row, row | {name: value})]
    with table_writer(layout.traffic(0, "parquet"), TRAFFIC_COLUMNS, "parquet") as writer:
        writer.write(np.array(rows, np.int32).T)
    with pytest.raises(InputError, match=f"cannot be read: {name} is not 0 to"):
        measure_expressway(promised, read_manifest(promised), 0)


def test_a_directory_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("xstream")), "linearroad", "describe"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no manifest.json" in done.stderr
