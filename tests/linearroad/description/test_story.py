"""The story of one vehicle tells what its rows and the answers to it say, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.description.demo_page import road_parts
from linearroad.description.story import Story, tell
from linearroad.files import TRAFFIC_COLUMNS
from linearroad.generation.layout import Layout
from linearroad.validation.page import write_report

from tests.linearroad.description.test_page import accident, late_figures
from tests.linearroad.validation.test_page import example
from tests.report.figures import check_frame, drawn

MANIFEST = {"parameters": {"format": "parquet"}}
#: Vehicle 7 drives west, pays 30 and asks for its balance; vehicle 8 is only told that it pays 0.
ROWS = [
    {"type": 0, "time": 10, "vid": 7, "spd": 40, "dir": 1, "seg": 50, "pos": 50 * 5280 + 99},
    {"type": 0, "time": 10, "vid": 8, "spd": 40, "dir": 0, "seg": 3, "pos": 3 * 5280},
    {"type": 0, "time": 40, "vid": 7, "spd": 0, "dir": 1, "seg": 49, "pos": 49 * 5280 + 99},
    {"type": 2, "time": 41, "vid": 7, "qid": 900},
    {"type": 3, "time": 42, "vid": 8, "qid": 901},
    {"type": 0, "time": 70, "vid": 7, "spd": 30, "dir": 1, "seg": 48, "pos": 48 * 5280 + 99},
]
ANSWERS = """0,7,10,10,39,30
0,8,10,10,-1,0
0,7,40,40,20,0
1,40,40,7,47
2,41,41,40,900,30
3,42,42,901,12
"""


@pytest.fixture
def told(tmp_path: Path) -> Story:
    path = Layout(tmp_path).traffic(0, "parquet")
    path.parent.mkdir(parents=True)
    columns = {
        name: pa.array([row.get(name, -1) for row in ROWS], pa.int32()) for name in TRAFFIC_COLUMNS
    }
    pq.write_table(pa.table(columns), path, write_page_checksum=True)
    (tmp_path / "output.csv").write_text(ANSWERS)
    story = tell(tmp_path, MANIFEST, tmp_path / "output.csv")
    assert story is not None
    return story


def test_the_vehicle_with_the_most_to_tell_is_chosen(told: Story) -> None:
    assert (told.vid, told.direction, told.tolls, told.alerts, told.balance) == (
        7, 1, [30, 0], 1, 30,
    )  # fmt: skip
    assert [(event.second, event.words) for event in told.events] == [
        (10, "first report, at mile 50.0, driving west"),
        (10, "a toll of 30 for the segment: the average speed is 39 mph"),
        (40, "in the queue at mile 49.0, at 0 mph"),
        (40, "no toll for the segment: there is an accident ahead"),
        (40, "alert: accident in segment 47"),
        (41, "asks for its balance: 30, as of second 40"),
        (70, "last report, at mile 48.0, after 3 reports"),
    ]
    assert told.mile_at(69) == pytest.approx(49.02, abs=0.01)


def test_without_answers_there_is_no_story(told: Story, tmp_path: Path) -> None:
    (tmp_path / "output.csv").write_text("")
    assert tell(tmp_path, MANIFEST, tmp_path / "output.csv") is None


def test_the_demo_page_begins_with_the_road_then_the_vehicle_then_the_checks(
    told: Story, tmp_path: Path
) -> None:
    parts = road_parts(late_figures(), [accident(40.0, -300, 900)], told)
    page = write_report(tmp_path, example(), "The demo", parts).read_text()
    check_frame(page)
    order = ["<h2>The road", "<h2>One vehicle: 7", "a toll of 30", "<h2>The checks", "WRONG: 1"]
    places = [page.index(words, page.index("<body>")) for words in order]
    assert places == sorted(places)
    west, east, close = drawn(page)[:3]
    assert [len(each["layout"]["images"]) for each in (west, east, close)] == [1, 1, 1]
    names = [trace.get("name") for trace in close["data"]]
    assert {"vehicle 7", "toll", "accident alert", "balance"} <= set(names)
    numbers = [f'id="plot{number}"' for number in range(len(drawn(page)))]
    assert all(page.count(number) == 1 for number in numbers)


def test_without_a_vehicle_the_page_has_the_road_alone() -> None:
    parts: list[Any] = road_parts(late_figures(), [], None)
    assert len(parts) == 1
    assert np.all(["One vehicle" not in part for part in parts])
