"""History: tolls by the formula, the week's shape, and a store that agrees with the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from linearroad.generation.job import generate
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest
from linearroad.generation.parameters import TrafficParameters
from linearroad.history.aggregation import toll_table
from linearroad.history.shape import day_of_week, levels, load_profile
from linearroad.history.store import SEGMENT_SUMS_SHAPE, HistoryStore
from linearroad.history.tasks import SEGMENT_COLUMNS, write_day

from tests.linearroad import reference

PARAMETERS = TrafficParameters(expressways=1, minutes=3, seed=2)


@pytest.fixture(scope="session")
def with_history(spark_session: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("history") / "out"
    generate(PARAMETERS, out, history=True)
    return out


def read(path: Path) -> dict[str, np.ndarray]:
    table = pq.read_table(path, partitioning=None)
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.fixture
def one_day(tmp_path: Path) -> dict[str, np.ndarray]:
    layout = Layout(tmp_path)
    layout.vids(0).parent.mkdir(parents=True)
    np.save(layout.vids(0), np.arange(100, dtype=np.int32))
    write_day(tmp_path, PARAMETERS, (0, 7))
    return read(layout.history("segments", 0, 7))


def test_a_day_has_every_minute_of_every_segment_once(one_day: dict[str, np.ndarray]) -> None:
    assert tuple(one_day) == SEGMENT_COLUMNS
    keys = (one_day["min"] - 1) * 200 + one_day["dir"] * 100 + one_day["seg"]
    np.testing.assert_array_equal(np.sort(keys), np.arange(1440 * 200))
    assert set(one_day["day"]) == {7}


def test_tolls_follow_the_formula(one_day: dict[str, np.ndarray]) -> None:
    lav, cnt = one_day["lav"].astype(np.int64), one_day["cnt"].astype(np.int64)
    expected = np.where((lav < 40) & (cnt > 50), 2 * (cnt - 50) ** 2, 0)
    np.testing.assert_array_equal(one_day["toll"], expected)
    assert (expected > 0).mean() > 0.05


def test_the_afternoon_of_a_weekday_is_the_simulated_climb(one_day: dict[str, np.ndarray]) -> None:
    _, cnt = load_profile()
    usual = cnt[150].sum()
    here = one_day["cnt"][one_day["min"] == 901 + 150].sum()
    assert 0.85 * usual < here < 1.15 * usual
    night = one_day["cnt"][one_day["min"] == 180].sum()
    assert night < 0.2 * here


def test_weekends_are_quieter_and_days_of_the_week_go_backwards() -> None:
    assert [day_of_week(day) for day in range(1, 9)] == [4, 3, 2, 1, 7, 6, 5, 4]
    assert {sum(day_of_week(day) == dow for day in range(1, 71)) for dow in range(1, 8)} == {10}
    for weekend in (6, 7):
        assert levels(weekend).max() < 0.6 * levels(5).max()


def test_a_toll_table_is_sorted_and_zero_where_there_is_no_row() -> None:
    vids, table = toll_table(*np.array([[9, 2, 9], [1, 69, 3], [5, 6, 7]], np.int32))
    assert vids.tolist() == [2, 9]
    assert table[1, [0, 1, 2]].tolist() == [5, 0, 7]
    assert table[0, 68] == 6


@pytest.mark.spark
def test_the_store_holds_the_sums_of_the_ten_days(with_history: Path) -> None:
    layout = Layout(with_history)
    store = HistoryStore(with_history)
    history = store.expressway(0)
    assert history is not None
    assert history.segment_sums.shape == SEGMENT_SUMS_SHAPE
    expected = np.zeros((2, 1440, 100, 3), np.int64)
    days: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for day in (d for d in range(1, 71) if day_of_week(d) == 5):
        rows = read(layout.history("segments", 0, day))
        at = (rows["dir"], rows["min"] - 1, rows["seg"])
        for column, name in enumerate(("lav", "cnt")):
            expected[(*at, column)] += rows[name]
        expected[(*at, 2)] += 1
        for d, m, s, lav, cnt in zip(*at, rows["lav"], rows["cnt"], strict=True):
            days.setdefault((int(d), int(m) + 1, int(s)), []).append((int(lav), int(cnt)))
    np.testing.assert_array_equal(history.segment_sums[4], expected)
    rng = np.random.default_rng(0)
    for sinit, send, tod in zip(
        rng.integers(0, 100, 60), rng.integers(0, 100, 60), rng.integers(1, 1441, 60), strict=True
    ):
        asked = int(sinit), int(send), int(tod)
        answer = store.travel_time(0, asked[0], asked[1], 5, asked[2])
        assert answer == reference.travel_time(days, *asked)
    assert store.travel_time(9, 1, 2, 1, 1) == (3600, 0)


@pytest.mark.spark
def test_the_store_knows_what_every_vehicle_paid(with_history: Path) -> None:
    layout = Layout(with_history)
    store = HistoryStore(with_history)
    paid = 0
    for day in (1, 33, 69):
        rows = read(layout.history("tolls", 0, day))
        np.testing.assert_array_equal(rows["vid"], np.load(layout.vids(0)))
        for vid, tolls in list(zip(rows["vid"], rows["tolls"], strict=True))[:200]:
            assert store.expenditure(int(vid), day, 0) == tolls
            paid += int(tolls)
    assert paid > 0
    assert store.expenditure(10**9, 1, 0) == 0
    assert store.expenditure(0, 1, 5) == 0


@pytest.mark.spark
def test_history_is_counted_in_the_manifest_and_made_once(with_history: Path) -> None:
    manifest = read_manifest(with_history)
    vehicles = manifest["totals"]["vehicles"]
    assert manifest["totals"]["history_rows"] == 70 * 288_000 + 69 * vehicles
    before = Layout(with_history).history("segments", 0, 1).stat().st_mtime_ns
    again = generate(PARAMETERS, with_history, history=True)
    assert again == manifest
    assert Layout(with_history).history("segments", 0, 1).stat().st_mtime_ns == before
