"""`run --master`: the groups of a run as tasks, compared with one engine for all of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from linearroad.generation.job import generate
from linearroad.generation.parameters import TrafficParameters
from linearroad.output.digests import read_digests
from linearroad.run.cluster import Job, run_on_cluster
from linearroad.run.job import RunOptions, run
from linearroad.tables.history import History

from tests.linearroad.cluster.answers import by_group
from xstream.errors import InputError

pytestmark = pytest.mark.spark
GROUP = 2


@pytest.fixture(scope="module")
def grouped(spark_session: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four expressways in two groups."""
    out = tmp_path_factory.mktemp("grouped") / "out"
    parameters = TrafficParameters(4, 3, 9, from_minute=5, group=GROUP, two_expressways_share=0.2)
    generate(parameters, out, partitions=1)
    return out


def job(source: Path, out: Path, **options: object) -> Job:
    return Job(source, out, None, None, None, RunOptions(**options))  # type: ignore[arg-type]


def test_the_answers_of_each_group_are_those_of_one_engine(grouped: Path, tmp_path: Path) -> None:
    alone = run(grouped, tmp_path / "one", History(), RunOptions())
    result = run_on_cluster(job(grouped, tmp_path / "many"), None)
    expected = by_group(grouped, tmp_path / "one" / "output.csv", GROUP)
    folders = sorted((tmp_path / "many" / "groups").iterdir())
    assert [(folder / "output.csv").read_bytes() for folder in folders] == expected
    assert all(expected)
    assert (result.answers, result.rows) == (alone.answers, alone.rows)
    told = json.loads((tmp_path / "many" / "summary.json").read_text())
    assert told["rows_by_type"]["position reports"] == alone.reports
    assert (told["groups"], told["expressways"]) == (2, 4)
    assert not (tmp_path / "many" / ".work").exists()


def test_copies_in_several_tasks_are_compared_with_their_originals(
    generated: Path, tmp_path: Path
) -> None:
    options = {"answers": "digest", "expressways": 9}
    run(generated, tmp_path / "one", History(), RunOptions(**options))  # type: ignore[arg-type]
    result = run_on_cluster(job(generated, tmp_path / "many", **options), None, 3)
    assert (result.copies_differ, result.first_differences) == (0, [])
    expected = read_digests(tmp_path / "one" / "digests.parquet", 9, 8)
    for number in range(3):
        file = tmp_path / "many" / "groups" / f"group-{number:05d}" / "digests.parquet"
        found = read_digests(file, 3, 8, 3 * number)
        np.testing.assert_array_equal(found, expected[3 * number : 3 * number + 3])


def test_what_is_complete_is_kept_when_the_driver_begins_again(
    grouped: Path, tmp_path: Path
) -> None:
    out = tmp_path / "many"
    first = run_on_cluster(job(grouped, out), None)
    (out / "summary.json").unlink()
    marker = out / "groups" / "group-00000" / "marker"
    marker.touch()
    (out / "groups" / "group-00001" / "result.json").unlink()
    again = run_on_cluster(job(grouped, out, resume=True, checkpoint_s=60.0), None)
    assert again.answers == first.answers
    assert marker.exists()


def test_a_paced_run_starts_all_groups_at_once(grouped: Path, tmp_path: Path) -> None:
    result = run_on_cluster(job(grouped, tmp_path / "out", speed=200.0), None)
    assert result.response_s["toll notifications"]["worst"] < 60
    assert (tmp_path / "out" / "summary.json").is_file()


def test_a_paced_run_that_does_not_fit_is_refused(generated: Path, tmp_path: Path) -> None:
    wanted = job(generated, tmp_path / "out", speed=10.0, expressways=15, answers="digest")
    with pytest.raises(InputError, match="needs all of its 5 groups at a time"):
        run_on_cluster(wanted, None, 3)
    assert not (tmp_path / "out" / "summary.json").exists()
