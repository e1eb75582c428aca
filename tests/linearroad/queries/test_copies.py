"""Copies of expressways are really worked on, each by itself, and digests tell when one differs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from linearroad.layout import Layout
from linearroad.manifest import MANIFEST_VERSION
from linearroad.queries import sharding
from linearroad.queries.comparing import differences, read_digests
from linearroad.queries.delays import TYPES
from linearroad.queries.history import History
from linearroad.queries.layout import column
from linearroad.queries.network import copy_of
from linearroad.queries.operators.digests import DIGEST_WIDTH, KINDS, weight
from linearroad.queries.run import RunOptions, RunResult, run

import xstream as xs
from tests.linearroad.queries.engine import history_of
from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario, scenario
from xstream.errors import InputError

BASE = 2


@pytest.fixture(scope="module")
def case() -> Scenario:
    """A scenario on two expressways, its vehicles numbered from 0 as generated ones are."""
    found = scenario(11)
    rows, _ = reference.parse(found.text)
    roads = {xway: i for i, xway in enumerate(sorted({r.xway for r in rows if r.type == 0})[:BASE])}
    kept = [row for row in rows if row.type == 2 or row.xway in roads]
    vids = {vid: i for i, vid in enumerate(sorted({row.vid for row in kept}))}
    kept = [row._replace(vid=vids[row.vid], xway=roads.get(row.xway, -1)) for row in kept]
    tolls = [
        (vids[v], day, roads[x], t) for v, day, x, t in found.tolls if v in vids and x in roads
    ]
    past = [(d, m, roads[x], *more) for d, m, x, *more in found.segment_history if x in roads]
    return Scenario(kept, reference.to_text(kept), tolls, past)


@pytest.fixture(scope="module")
def directory(case: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario's rows as a directory of two expressways' files."""
    place = tmp_path_factory.mktemp("copies")
    rows, _ = reference.parse(case.text)
    layout = Layout(place)
    layout.traffic(0, "csv").parent.mkdir()
    for xway in range(BASE):
        own = [row for row in rows if (row.xway if row.type != 2 else row.qid) % BASE == xway]
        layout.traffic(xway, "csv").write_text(reference.to_text(own))
    manifest = {
        "version": MANIFEST_VERSION,
        "complete": True,
        "parameters": {"format": "csv", "expressways": BASE},
        "totals": {
            "vehicles": max(row.vid for row in rows) + 1,
            "queries": max(row.qid for row in rows) + 1,
        },
    }
    layout.manifest.write_text(json.dumps(manifest))
    return place


def digest(directory: Path, out: Path, history: History, **options: object) -> RunResult:
    return run(directory, out, history, RunOptions(answers="digest", **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def history(case: Scenario) -> History:
    return history_of(case.tolls, case.segment_history)


def test_a_digest_is_that_of_the_answers(
    directory: Path, case: Scenario, history: History, tmp_path: Path
) -> None:
    found = digest(directory, tmp_path, history)
    rows, _ = reference.parse(case.text)
    answers = reference.answers(rows, "paper", case.tolls, case.segment_history)
    assert found.digests is not None
    expected = np.zeros((found.digests.shape[1], KINDS, DIGEST_WIDTH), np.int64)
    with np.errstate(over="ignore"):
        for answer in answers:
            kind = answer[0]
            time = answer[2] if kind == 0 else answer[1]
            who = {0: 1, 1: 2, 2: 3, 3: 2, 4: 2}[kind]
            said = {0: answer[3:], 1: (*answer[3:], 0), 2: (0, answer[-1])}.get(kind)
            value, amount = said or ((0, answer[-1]) if kind == 3 else answer[3:])
            w = np.int64(weight.py_func(kind, time, value, np.int64(amount)))
            expected[time // 60, kind] += [1, w, w * answer[who], w * answer[who] * answer[who]]
    np.testing.assert_array_equal(found.digests.sum(axis=0), expected.view(np.uint64))
    shape = found.digests.shape[:2]
    np.testing.assert_array_equal(read_digests(tmp_path / "digests.parquet", *shape), found.digests)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_copies_are_answered_as_their_originals_are(
    directory: Path, history: History, tmp_path: Path, workers: int
) -> None:
    alone = digest(directory, tmp_path / "alone", history)
    many = digest(directory, tmp_path / "many", history, expressways=5 * BASE, workers=workers)
    assert alone.digests is not None
    assert many.digests is not None
    assert (alone.digests[:, :, 0, 0].sum(axis=1) > 0).all()
    np.testing.assert_array_equal(many.digests, np.tile(alone.digests, (5, 1, 1, 1)))
    assert many.copies_differ == 0
    assert many.reports == 5 * alone.reports
    assert many.rows == 5 * alone.rows
    assert many.answers == {name: 5 * alone.answers[name] for name in TYPES}
    assert many.rejects == alone.rejects
    summary = json.loads((tmp_path / "many" / "summary.json").read_text())
    assert (summary["expressways"], summary["generated_expressways"]) == (5 * BASE, BASE)
    assert summary["history_is_shared"] is True
    assert summary["answers_are"] == "digest"


@xs.kernel(state=np.zeros(1), out=column("int32"))
def one_faster(spd, state, out):  # type: ignore[no-untyped-def]
    """The first report ever is 1,000 mph faster, so that averages show it."""
    speeds = spd.copy()
    if len(speeds) > 0 and state[0] == 0:
        speeds[0] += 1000
        state[0] = 1
    out.emit_at(0, speeds)


def test_a_row_of_one_copy_changes_that_copys_digest_and_no_other(
    directory: Path, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy_with_a_difference(seconds: xs.Stream, *by: int, part: str) -> xs.Stream:
        made = copy_of(seconds, *by, part)
        if part != " 7":
            return made
        changed = made.select("spd").iterate(one_faster).zip(made)
        order = ["value" if field.name == "spd" else field.name for field in made.schema]
        return changed.select(*order)

    alone = digest(directory, tmp_path / "alone", history)
    monkeypatch.setattr(
        sharding, "copy_of", lambda s, v, x, q, part: copy_with_a_difference(s, v, x, q, part=part)
    )
    many = digest(directory, tmp_path / "many", history, expressways=5 * BASE)
    assert alone.digests is not None
    assert many.digests is not None
    wrong, first = differences(many.digests, alone.digests)
    assert wrong > 0
    assert {difference.expressway for difference in first} == {7}
    assert many.copies_differ == wrong
    assert "expressway 7, minute" in many.first_differences[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"expressways": 5}, "has 2 expressways, so --expressways is a multiple of that, not 5"),
        ({"expressways": 0}, "multiple of that, not 0"),
        ({"expressways": BASE * 2**30}, "there are numbers for 2,147,483,648"),
        ({"expressways": 4, "rules": "walmart"}, "need rules paper and scheduler df"),
        ({"answers": "digest", "scheduler": "fifo"}, "need rules paper and scheduler df"),
        ({"answers": "none"}, "--answers is write or digest, not 'none'"),
    ],
)
def test_what_cannot_be_copied_is_refused(
    directory: Path, tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        run(directory, tmp_path, History(), RunOptions(**options))  # type: ignore[arg-type]


def test_a_file_cannot_be_copied(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="copies a generated directory"):
        run(Layout(directory).traffic(0, "csv"), tmp_path, History(), RunOptions(expressways=2))


def test_written_answers_of_copies_are_those_of_shifted_traffic(
    directory: Path, case: Scenario, history: History, tmp_path: Path
) -> None:
    result = run(directory, tmp_path, history, RunOptions(expressways=2 * BASE))
    rows, _ = reference.parse(case.text)
    once = reference.answers(rows, "paper", case.tolls, case.segment_history)
    assert sum(result.answers.values()) == 2 * len(once)
    lines = (tmp_path / "output.csv").read_text().splitlines()
    vehicles = max(row.vid for row in rows) + 1
    originals = sorted(
        (int(f[2]), int(f[1]), int(f[4]), int(f[5]))
        for f in (line.split(",") for line in lines)
        if f[0] == "0" and int(f[1]) < vehicles
    )
    assert originals == sorted((a[2], a[1], a[3], a[4]) for a in once if a[0] == 0)


def test_a_paced_digest_says_how_late_answers_were(
    directory: Path, history: History, tmp_path: Path
) -> None:
    alone = digest(directory, tmp_path / "alone", history)
    paced = digest(directory, tmp_path / "paced", history, expressways=2 * BASE, speed=5000.0)
    assert alone.digests is not None
    assert paced.digests is not None
    np.testing.assert_array_equal(paced.digests, np.tile(alone.digests, (2, 1, 1, 1)))
    assert set(paced.response_s) == {name for name in TYPES if alone.answers[name]}
    for delays in paced.response_s.values():
        assert 0 <= delays["p50"] <= delays["p99"] <= delays["worst"]
        assert (delays["late"] > 0) == (delays["worst"] > delays["limit"])
