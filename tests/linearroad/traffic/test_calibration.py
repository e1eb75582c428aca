"""Three hours of one expressway are as docs/linear-road-rules.md, section 6 says."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from linearroad.description.figures import measure_expressway
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.tasks import (
    NumberedExpressway,
    simulate_expressway,
    warm_up,
    write_traffic,
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 20])
def test_three_hours_are_as_the_papers_report_them(tmp_path: Path, seed: int) -> None:
    parameters = TrafficParameters(expressways=1, minutes=180, seed=seed)
    warm_up()
    simulated = simulate_expressway(tmp_path, parameters, 0)
    written = write_traffic(tmp_path, parameters, NumberedExpressway(0, 0, 0, 0))
    path = tmp_path / written["file"]
    assert written["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    rows = pq.read_table(path, columns=["type", "vid"]).to_pandas()
    assert written["rows"] == len(rows)
    assert written["vehicles"] == rows["vid"].nunique()
    manifest = {"parameters": parameters.as_dict(), "simulated": [simulated]}
    figures = measure_expressway(tmp_path, manifest, 0)
    assert figures.reports == (rows["type"] == 0).sum()
    assert figures.vehicles == written["vehicles"]
    assert 10_800_000 <= figures.reports <= 13_200_000
    assert 10 <= figures.first_minute_rate <= 25
    assert 1500 <= figures.last_minute_rate <= 1900
    assert 130_000 <= figures.vehicles <= 165_000
    assert 2_000_000 <= figures.notifications <= 2_300_000
    assert 23_800 <= figures.alerts <= 34_000
    assert figures.tolls_above_zero / figures.notifications > 0.1
    assert 0.4 < figures.queries["balance"] / sum(figures.queries.values()) < 0.6
    assert len(simulated["accidents"]) == 9
