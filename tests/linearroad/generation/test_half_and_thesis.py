"""Half expressways and the thesis' traffic, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION, rating_l
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.tasks import eastbound, is_half
from linearroad.rating.steps import l_text
from linearroad.rowforms import nine_fields, papers_reports
from linearroad.run.copies import copies_of
from linearroad.traffic.simulation import Expressway, thesis_accidents, unpack

from tests.reference import linearroad as paper
from tests.reference import linearroad_thesis as reference
from tests.reference.linearroad_strategies import scenario
from xstream.errors import InputError


def test_an_l_may_end_in_a_half() -> None:
    made = TrafficParameters.of_l(2.5, minutes=1, seed=1)
    assert (made.expressways, made.half) == (3, True)
    assert [is_half(made, xway) for xway in range(3)] == [False, False, True]
    assert rating_l({"parameters": made.as_dict()}) == 2.5
    whole = TrafficParameters.of_l(2, minutes=1, seed=1)
    assert "half" not in whole.as_dict()  # directories of earlier versions can be continued
    for wrong in (0.0, 0.25, 1.3, -1.0, 1e9):
        with pytest.raises(InputError, match=r"from 0\.5 to 100000 in steps of 0\.5"):
            TrafficParameters.of_l(wrong, minutes=1, seed=1)


@pytest.mark.slow
def test_half_an_expressway_has_the_reports_of_one_direction() -> None:
    road = Expressway(seed=1, xway=0, seconds=120)
    both = road.advance(120)
    half = eastbound(both)
    east = unpack(both.packed).dir == 0
    assert 0 < len(half.packed) < len(both.packed)
    assert (half.packed == both.packed[east]).all()
    assert int(half.rows_by_second.sum()) == len(half.packed)
    second = np.repeat(np.arange(120), both.rows_by_second)[east]
    assert (np.bincount(second, minlength=120) == half.rows_by_second).all()


def test_copies_of_a_base_with_a_half_count_it_as_half(tmp_path: Path) -> None:
    manifest = {
        "version": MANIFEST_VERSION,
        "complete": True,
        "parameters": {"format": "csv", "expressways": 2, "half": True},
        "totals": {"vehicles": 10, "queries": 5},
    }
    Layout(tmp_path).manifest.write_text(json.dumps(manifest))
    assert [copy.xway_by for copy in copies_of(tmp_path, 4.5)] == [0, 2, 4]
    with pytest.raises(InputError, match=r"has 1\.5 expressways, .* multiple of 1\.5, not 2"):
        copies_of(tmp_path, 2)
    assert l_text(4.5) == "4.5"


def test_in_each_direction_one_accident_of_the_thesis_follows_another() -> None:
    from linearroad.traffic import _kernels_cars as k

    road = Expressway(seed=3, xway=0, seconds=2700, traffic="thesis")
    road.advance(2700)
    for direction in (0, 1):
        own = road.road.accidents[road.road.accidents[:, k.ACCIDENT_DIR] == direction]
        happened = own[own[:, k.ACCIDENT_STATE] >= k.STANDING]
        assert len(happened) == 3
        assert happened[:, k.ACCIDENT_CLEARED].tolist() == [1200.0, 2400.0, 3600.0]
        assert (happened[1:, k.ACCIDENT_STOPPED] >= happened[:-1, k.ACCIDENT_CLEARED]).all()
        assert (happened[1:, k.ACCIDENT_STOPPED] < happened[:-1, k.ACCIDENT_CLEARED] + 60).all()
        assert len(set(happened[:, k.ACCIDENT_X])) == 3
    assert len(thesis_accidents(road.key, 10_800)) == 18


def test_nine_field_rows_are_the_papers_rows_translated() -> None:
    good, _ = paper.parse(scenario(3).text)
    rows = np.array(good, np.int32).T
    translated = [reference.of_paper(row) for row in good]
    assert nine_fields(rows).T.tolist() == [list(row.row()) for row in translated]
    back = papers_reports(nine_fields(rows))
    reports = rows[0] == 0
    for field in (0, 1, 2, 3, 4, 6, 7):  # all but Lane and Pos, of which something is lost
        assert (back[field][reports] == rows[field][reports]).all()
