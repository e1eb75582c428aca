"""The engine's own answers to generated traffic are right, by every rule set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.generation.job import generate
from linearroad.generation.parameters import TrafficParameters
from linearroad.run.job import RunOptions, run
from linearroad.tables.history import History, load_history
from linearroad.validation.job import HistoryPaths, validate

pytestmark = pytest.mark.spark
RULES = ("paper", "brandeis", "walmart")


def test_three_expressways_without_history(generated: Path, tmp_path: Path) -> None:
    run(generated, tmp_path, History(), RunOptions(form="parquet"))
    shown = validate(generated, tmp_path)
    assert shown.verdict.first_differences == []
    assert shown.verdict.passed
    assert all(shown.verdict.types[kind].right > 0 for kind in (0, 2, 3, 4))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_rows_of_a_second_in_any_order_are_validated_every_time(
    generated: Path, tmp_path: Path
) -> None:
    """How intermediate tables are divided depends on the order of rows and on chance."""
    tables = [pq.read_table(path) for path in sorted((generated / "traffic").glob("*.parquet"))]
    rows = np.stack([column.to_numpy() for column in pa.concat_tables(tables).columns])
    order = np.lexsort((np.random.default_rng(7).random(rows.shape[1]), rows[1]))
    np.savetxt(tmp_path / "rows.csv", rows[:, order].T, "%d", delimiter=",")
    run(tmp_path / "rows.csv", tmp_path / "out", History(), RunOptions())
    for _ in range(4):
        assert validate(tmp_path / "rows.csv", tmp_path / "out").verdict.passed


@pytest.fixture(scope="module")
def rush_hour(
    request: pytest.FixtureRequest, spark_session: object, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("rush-hour") / "out"
    parameters = TrafficParameters(expressways=request.param, minutes=10, seed=2, from_minute=150)
    generate(parameters, out, history=True)
    return out


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rush_hour", [1, 3], indirect=True)
@pytest.mark.parametrize("rules", RULES)
def test_rush_hour_with_history(rush_hour: Path, tmp_path: Path, rules: str) -> None:
    history = load_history(rush_hour, None, None)
    run(rush_hour, tmp_path, history, RunOptions(rules=rules))
    shown = validate(rush_hour, tmp_path, HistoryPaths(rush_hour))
    assert shown.verdict.first_differences == []
    assert shown.verdict.passed
    assert all(each.right > 0 for each in shown.verdict.types)
