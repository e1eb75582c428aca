"""Pictures of queries, runs, statistics and segments, without Graphviz."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xstream as xs
from tests.engine import kernels
from xstream.layout import GAP, Box, layered
from xstream.sigseg.waveform import waveform

SVG = "{http://www.w3.org/2000/svg}"
EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30)
WIDTHS = st.lists(st.floats(10, 200), min_size=12, max_size=12)


@given(EDGES, WIDTHS)
def test_boxes_never_overlap_and_edges_join_their_boxes(
    edges: list[tuple[int, int]], widths: list[float]
) -> None:
    boxes = [Box(width, 30) for width in widths]
    found = layered(boxes, edges)
    rows: dict[float, list[int]] = {}
    for number, (x, y) in enumerate(found.centres):
        assert x - widths[number] / 2 >= -1e-6
        assert x + widths[number] / 2 <= found.width + 1e-6
        assert 15 <= y <= found.height - 15
        rows.setdefault(y, []).append(number)
    for row in rows.values():
        row.sort(key=lambda number: found.centres[number])
        for left, right in pairwise(row):
            apart = found.centres[right][0] - found.centres[left][0]
            assert apart >= (widths[left] + widths[right]) / 2 + GAP - 1e-6
    for (first, second), path in zip(edges, found.paths, strict=True):
        if first == second:
            assert path == []
        else:
            assert path[0] == found.centres[first]
            assert path[-1] == found.centres[second]
            steps = [after[1] - before[1] for before, after in pairwise(path)]
            assert all(step > 0 for step in steps) or all(step < 0 for step in steps)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_what_is_fed_lies_below_unless_the_edge_closes_a_cycle(
    edges: list[tuple[int, int]],
) -> None:
    forward = [(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]]
    centres = layered([Box(40, 20)] * 12, forward).centres
    assert all(centres[first][1] < centres[second][1] for first, second in forward)


def test_two_crossing_edges_are_untangled() -> None:
    found = layered([Box(40, 20)] * 4, [(0, 3), (1, 2)])
    x = [centre[0] for centre in found.centres]
    assert (x[0] < x[1]) == (x[3] < x[2])


def test_a_graph_of_1000_operators_is_placed() -> None:
    edges = [(number // 2, number) for number in range(1, 1000)]
    found = layered([Box(60, 20)] * 1000, edges)
    assert len(set(found.centres)) == 1000


def query() -> tuple[xs.Query, xs.Stream]:
    q = xs.Query("a < b & c")
    samples = np.arange(64, dtype=np.float32)
    src = q.source(xs.io.array(samples, rate_hz=8.0, window=8), name="<source>")
    back = q.feedback(src.schema)
    merged = src.merge(back, name='a "name"')
    q.connect(back, merged.filter(kernels.louder, 1e9))
    merged.count()
    return q, src


def test_a_drawing_has_a_box_for_each_operator_and_a_curve_for_each_edge() -> None:
    q, _ = query()
    root = ElementTree.fromstring(q.draw())
    assert root.tag == f"{SVG}svg"
    boxes = [rect for rect in root.iter(f"{SVG}rect") if "box" in rect.get("class", "").split()]
    assert len(boxes) == len(q.nodes)
    edges = sum(edge is not None for node in q.nodes for edge in node.inputs)
    assert len([p for p in root.iter(f"{SVG}path") if p.get("class") == "edge"]) == edges
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"<source>", 'a "name"'} <= texts
    assert root.findtext(f"{SVG}title") == "a < b & c"
    assert q.draw()._repr_svg_() == str(q.draw())
    assert str(q.draw()) in q._repr_html_()


def test_what_edges_carry_is_neither_cut_off_nor_written_over_other_text() -> None:
    q = xs.Query()
    windows = q.source(xs.io.array(np.zeros(64, np.float32), rate_hz=8000.0, window=8))
    windows.mean().zip(windows.std(), windows.rewindow(16)).collect()
    root = ElementTree.fromstring(q.draw())
    left, _, width, _ = map(float, root.get("viewBox", "").split())
    boxes = []
    for text in root.iter(f"{SVG}text"):
        half = 2.2 * len(text.text or "") if text.get("class") == "carried" else 0.0
        x, y = float(text.get("x", 0)), float(text.get("y", 0))
        assert left <= x - half
        assert x + half <= left + width
        boxes.append((x - half, x + half, y))
    for number, (low, high, y) in enumerate(boxes):
        for other_low, other_high, other_y in boxes[:number]:
            assert abs(y - other_y) > 8 or high <= other_low or other_high <= low


def test_edges_are_interrupted_where_they_are_written_on() -> None:
    q = xs.Query()
    windows = q.source(xs.io.array(np.zeros(64, np.float32), rate_hz=8000.0, window=8))
    windows.mean().zip(windows.std()).collect()
    root = ElementTree.fromstring(q.draw())
    (mask,) = root.iter(f"{SVG}mask")
    edges = [path for path in root.iter(f"{SVG}path") if path.get("class") == "edge"]
    assert {edge.get("mask") for edge in edges} == {f"url(#{mask.get('id')})"}
    _, *holes = [[float(hole.get(key, 0)) for key in ("x", "y", "width")] for hole in mask]
    written = [text for text in root.iter(f"{SVG}text") if text.get("class") == "carried"]
    assert len(holes) == len(written) > 4
    for text, (left, top, width) in zip(written, holes, strict=True):
        assert float(text.get("x", 0)) == pytest.approx(left + width / 2, abs=0.11)
        assert top < float(text.get("y", 0)) < top + 12
        assert width >= 4.4 * len(text.text or "")
    other = xs.Query()
    other.source(xs.io.array(np.zeros(64), window=8)).count()
    assert str(mask.get("id")) not in other.draw()  # several pictures may be in one page


def test_an_empty_query_is_drawn() -> None:
    assert ElementTree.fromstring(xs.Query().draw()).tag == f"{SVG}svg"


def test_a_run_and_its_statistics_are_tables() -> None:
    q, src = query()
    run = q.run()
    shown = ElementTree.fromstring(f"<div>{run._repr_html_()}</div>")
    cells = [[cell.text for cell in row] for row in shown.iter("tr")]
    assert cells[0][0] == "operator"
    assert cells[1][:3] == ["<source>", "8", "64"]
    assert len(cells) == 1 + len(q.nodes)
    own = ElementTree.fromstring(run.stats_of(src)._repr_html_())
    assert [cell.text for cell in own.findall(".//td")][:2] == ["8", "64"]


@pytest.mark.parametrize("dtype", ["f4", "i2", "u1", "?", "c8", "i4,f4"])
def test_a_segment_shows_a_curve_where_its_samples_have_an_order(dtype: str) -> None:
    shown = xs.SigSeg(np.zeros(5, dtype))._repr_html_()
    ElementTree.fromstring(shown.replace("<br>", ""))
    assert ("<polyline" in shown) == (np.dtype(dtype).kind in "fiub")


def test_a_spike_in_a_long_segment_reaches_the_top_of_the_curve() -> None:
    samples = np.zeros(100_000)
    samples[54_321], samples[7] = 1.0, np.nan
    picture = ElementTree.fromstring(waveform(samples))
    line = picture.find(f"{SVG}polyline")
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert [round(x) for x, y in points if y == 2.0] == [326]
    assert "100,000 samples from 0 to 1" in picture.findtext(f"{SVG}title", "")


@pytest.mark.parametrize("samples", [[], [np.nan, np.inf]])
def test_no_curve_without_numbers(samples: list[float]) -> None:
    assert waveform(np.array(samples, np.float64)) == ""
