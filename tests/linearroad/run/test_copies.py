"""Every copy of an expressway is processed separately, and digests show when one differs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from linearroad.generation.layout import Layout
from linearroad.network import Network
from linearroad.operators.accidents import accidents
from linearroad.operators.accounts import accounts
from linearroad.operators.statistics import statistics
from linearroad.operators.tolls import tolls
from linearroad.operators.vehicles import vehicles
from linearroad.output.digests import differences, read_digests
from linearroad.output.sink import TYPES
from linearroad.rating import memory
from linearroad.rating.originals import check_written, digest_of_written
from linearroad.run.copies import Copy
from linearroad.run.engine import Engine
from linearroad.run.job import RunOptions, RunResult, run
from linearroad.schema import column
from linearroad.tables.history import History

import xstream as xs
from tests.reference import linearroad as reference
from tests.reference import linearroad_digests as reference_digests
from tests.reference.linearroad_strategies import Scenario
from xstream.errors import InputError

BASE = 2  # expressways of the directory


def digest(directory: Path, out: Path, history: History, **options: object) -> RunResult:
    return run(directory, out, history, RunOptions(answers="digest", **options))  # type: ignore[arg-type]


def test_a_digest_is_that_of_the_answers(
    directory: Path, case: Scenario, history: History, tmp_path: Path
) -> None:
    found = digest(directory, tmp_path, history)
    rows, _ = reference.parse(case.text)
    answers = reference.answers(rows, "paper", case.tolls, case.segment_history)
    assert found.digests is not None
    expected = np.array(reference_digests.digests(answers, found.digests.shape[1]), np.uint64)
    np.testing.assert_array_equal(found.digests.sum(axis=0, dtype=np.uint64), expected)
    shape = found.digests.shape[:2]
    np.testing.assert_array_equal(read_digests(tmp_path / "digests.parquet", *shape), found.digests)


@pytest.mark.parametrize("rules", ["brandeis", "walmart"])
@pytest.mark.parametrize("scheduler", ["df", "fifo"])
def test_every_rule_set_and_scheduler_works_on_copies_and_digests(
    directory: Path, case: Scenario, history: History, tmp_path: Path, rules: str, scheduler: str
) -> None:
    found = digest(
        directory, tmp_path, history, rules=rules, scheduler=scheduler, expressways=2 * BASE,
        threads=2,
    )  # fmt: skip
    rows, _ = reference.parse(case.text)
    answers = reference.answers(rows, rules, case.tolls, case.segment_history)
    assert found.digests is not None
    assert found.copies_differ == 0
    expected = np.array(reference_digests.digests(answers, found.digests.shape[1]), np.uint64)
    originals = found.digests[:BASE].sum(axis=0, dtype=np.uint64)
    np.testing.assert_array_equal(originals, expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_copies_are_answered_as_their_originals_are(
    directory: Path, history: History, tmp_path: Path, threads: int
) -> None:
    alone = digest(directory, tmp_path / "alone", history)
    many = digest(directory, tmp_path / "many", history, expressways=5 * BASE, threads=threads)
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


@xs.kernel(state=np.zeros(1), out={"spd": column("int32")})
def one_faster(spd, state, out):  # type: ignore[no-untyped-def]
    """The first report of all is 1,000 mph faster, so that averages change."""
    speeds = spd.copy()
    if len(speeds) > 0 and state[0] == 0:
        speeds[0] += 1000
        state[0] = 1
    out.emit_at(0, speeds)


def test_a_row_of_one_copy_changes_that_copys_digest_and_no_other(
    directory: Path, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Network.copied

    def copied_with_a_difference(
        self: Network, seconds: xs.Stream, copy: Copy, name: str
    ) -> xs.Stream:
        made = copied(self, seconds, copy, name)
        if name != " 7":
            return made
        changed = made.iterate(one_faster).zip(made)
        return changed.select(*(field.name for field in made.schema))

    alone = digest(directory, tmp_path / "alone", history)
    monkeypatch.setattr(Network, "copied", copied_with_a_difference)
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
        ({"expressways": 5}, "has 2 expressways, so --expressways must be a multiple of 2, not 5"),
        ({"expressways": 0}, "multiple of 2, not 0"),
        ({"expressways": BASE * 2**30}, "at most 2,147,483,648 can be numbered"),
        ({"answers": "none"}, "--answers must be write or digest, not 'none'"),
    ],
)
def test_what_cannot_be_copied_is_refused(
    directory: Path, tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        run(directory, tmp_path, History(), RunOptions(**options))  # type: ignore[arg-type]


def test_a_file_cannot_be_copied(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="requires a generated directory"):
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


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_run_that_goes_on_from_a_kept_state_answers_as_one_without_a_break(
    directory: Path, history: History, tmp_path: Path, cut: int
) -> None:
    alone = digest(directory, tmp_path / "alone", history)
    assert alone.digests is not None
    minutes = alone.digests.shape[1]
    assert cut < minutes
    state = tmp_path / "state"
    first = digest(directory, tmp_path / "first", history, minutes=cut, keep_state=state)
    rest = digest(
        directory, tmp_path / "rest", history, from_state=state, expressways=3 * BASE, threads=2
    )
    assert first.digests is not None
    assert rest.digests is not None
    np.testing.assert_array_equal(first.digests, alone.digests[:, :cut])
    assert not rest.digests[:, :cut].any()
    expected = np.tile(alone.digests[:, cut:], (3, 1, 1, 1))
    np.testing.assert_array_equal(rest.digests[:, cut:], expected)
    assert first.reports + rest.reports // 3 == alone.reports


def test_a_state_of_other_traffic_is_refused(
    directory: Path, history: History, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    digest(directory, tmp_path / "out", history, minutes=2, keep_state=state)
    meta = json.loads((state / "state.json").read_text())
    meta["traffic"]["totals"]["vehicles"] += 1
    (state / "state.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match="is a saved state of other traffic"):
        digest(directory, tmp_path / "out", history, from_state=state)
    with pytest.raises(InputError, match="contains no saved state"):
        digest(directory, tmp_path / "out", history, from_state=tmp_path)
    for options, sentence in (
        ({"keep_state": state}, "requires --minutes and cannot be used with --expressways"),
        ({"keep_state": state, "minutes": 2, "answers": "write"}, "require --answers digest"),
    ):
        with pytest.raises(InputError, match=sentence):
            run(directory, tmp_path, history, RunOptions(**{"answers": "digest"} | options))  # type: ignore[arg-type]


def test_the_digest_of_written_answers_is_the_sum_of_all_expressways(
    directory: Path, history: History, tmp_path: Path
) -> None:
    digested = digest(directory, tmp_path / "digested", history)
    run(directory, tmp_path / "written", history, RunOptions(form="parquet"))
    assert digested.digests is not None
    written = digest_of_written(tmp_path / "written" / "output.parquet", digested.digests.shape[1])
    np.testing.assert_array_equal(written, digested.digests.sum(axis=0, dtype=np.uint64))
    check_written(tmp_path / "written", digested.digests)
    other = digested.digests.copy()
    other[1, 2, 0, 1] += np.uint64(1)
    with pytest.raises(InputError, match="differ from those of this engine"):
        check_written(tmp_path / "written", other)


def test_what_does_not_fit_into_memory_is_refused_with_what_it_would_need(
    directory: Path, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**29)
    with pytest.raises(InputError, match=r"400 expressways need about .* and 0.5 GiB are free"):
        digest(directory, tmp_path / "out", history, expressways=200 * BASE)
    assert not (tmp_path / "out").exists()


def test_the_account_of_memory_lists_every_array_that_grows(
    directory: Path, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: list[Engine] = []
    start = Engine.run
    monkeypatch.setattr(
        Engine, "run", lambda self, *args: (engines.append(self), start(self, *args))
    )
    digest(directory, tmp_path / "out", history, expressways=2 * BASE)
    (engine,) = engines
    assert engine.done is not None
    kept = {
        "vehicles": vehicles, "accidents": accidents, "segment statistics": statistics,
        "tolls": tolls,
    }  # fmt: skip
    streams = [
        *(
            (kept[name], part.kept[name])
            for parts in engine.parts
            for part in parts
            for name in kept
        ),
        *((accounts, stream) for stream in engine.accounts),
    ]
    for kernel, stream in streams:
        declared = dict(zip(kernel.state_names or (), kernel.states, strict=True))
        grown = {
            name
            for name, array in engine.done.state(stream).items()
            if array.nbytes > 2 * declared[name].nbytes + 1024
        }
        # Generated traffic has no odd speeds, and its seconds are ordered by VID; this has neither.
        assert grown <= {*memory.GROWING.get(kernel, ()), "odd", "table"}


def test_an_overloaded_run_names_the_first_second_that_was_late_and_may_end_there(
    directory: Path, history: History, tmp_path: Path
) -> None:
    found = digest(
        directory, tmp_path / "out", history, expressways=40 * BASE, speed=1e6, stop_when_late=True
    )
    assert found.first_late is not None
    assert re.match(
        r"second [\d,]+: .* took .* stream seconds, and \d+ are allowed", found.first_late
    )
    assert found.longest is not None
    assert "took longest" in found.longest


def test_a_run_without_rows_has_empty_digests(
    directory: Path, history: History, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    shutil.copytree(directory, empty)
    for xway in range(BASE):
        Layout(empty).traffic(xway, "csv").write_text("")
    options = {"expressways": 2 * BASE, "allow_empty": True}
    found = digest(empty, tmp_path / "out", history, **options)
    assert found.digests is not None
    assert not found.digests.any()
    assert found.reports == 0
    state = tmp_path / "state"
    digest(directory, tmp_path / "first", history, minutes=2, keep_state=state)
    with pytest.raises(
        InputError, match="--minutes must be greater than 2, the minute of the saved state"
    ):
        digest(directory, tmp_path / "out", history, from_state=state, minutes=2)


def test_a_state_is_kept_of_generated_traffic_only(
    directory: Path, history: History, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        digest(
            Layout(directory).traffic(0, "csv"), tmp_path / "out", history,
            minutes=1, keep_state=tmp_path / "state",
        )  # fmt: skip
    assert not (tmp_path / "out").exists()
