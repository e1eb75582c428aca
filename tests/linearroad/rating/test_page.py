"""The page of `rate`: its required contents, and that a browser draws it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from linearroad.generation.manifest import write_json
from linearroad.rating.page import MOST_POINTS, page_data, write_page

from tests.linearroad.description.test_page import CHROMIUM, rendered
from tests.report.figures import check_frame, drawn
from xstream.errors import InputError
from xstream.report.gathered import gathered_page

KINDS = {"toll notifications": 5, "accident alerts": 5, "balances": 5, "expenditures": 10,
         "travel times": 30}  # fmt: skip
STAGES = {"decode": 2.3, "copies": 0.8, "vehicles": 40.0, "statistics": 5.0, "accidents": 2.0,
          "tolls": 12.0, "accounts": 3.0, "queries": 4.0, "output": 1.0, "other": 0.2}  # fmt: skip


def step(expressways: int, kind: str = "probe", passed: bool = True, **more: Any) -> dict[str, Any]:
    worst = expressways / 2000 if passed else 12.0 + expressways / 1000
    response = {
        name: {"p50": worst / 9, "p99": worst / 4, "p999": worst / 3, "p9999": worst / 2,
               "worst": worst * limit / 5, "limit": limit, "late": 0 if passed else 1234,
               "within_1_s": 1.0 if passed else 0.87}
        for name, limit in KINDS.items()
    }  # fmt: skip
    return {
        "expressways": expressways, "kind": kind, "speed": 10.0,
        "from_minute": 170 if kind == "probe" else 0, "to_minute": 180, "passed": passed,
        "why": "" if passed else "1,234 toll notifications came after 5 s, the worst after 12.9 s",
        "response_s": response, "worst_lag_s": worst, "reports": 1_048_000 * expressways,
        "reports_per_second": 17_400.0 * expressways, "answers": 154_000 * expressways,
        "peak_memory_bytes": 21_000_000 * expressways, "needed_bytes": 22_000_000 * expressways,
        "cpu_s": 0.12 * expressways, "wall_s": 60.1, "stage_ns": STAGES,
        "digests": {"compared": 25_000, "different": 0, "first": []},
        "stall": "second 10,512 waited 0.31 s for the host", **more,
    }  # fmt: skip


def refused(expressways: int) -> dict[str, Any]:
    zero = dict.fromkeys(
        ("worst_lag_s", "reports", "reports_per_second", "answers", "peak_memory_bytes", "cpu_s",
         "wall_s"), 0
    )  # fmt: skip
    return step(
        expressways, passed=False, response_s={}, stage_ns={}, stall="", **zero,
        why="it would need 29.4 GB of memory, and 24.9 GB are there",
        digests={"compared": 0, "different": 0, "first": []},
    )  # fmt: skip


def timeline(of: dict[str, Any], rows: int) -> list[dict[str, float]]:
    begin, seconds = 60 * of["from_minute"], 60 * (of["to_minute"] - of["from_minute"])
    behind = 0.1 if of["passed"] else 12.0
    return [
        {"wall_s": i * seconds / 10 / rows, "stream_s": begin + i * seconds / rows,
         "lag_s": behind * (i / rows) ** 3 + (0.31 if i == rows // 3 else 0.02 * (i % 7) / 7),
         "rows": 1e6 * i, "answers": 1e5 * i,
         "memory_bytes": 2.1e7 * of["expressways"] * (0.6 + 0.4 * i / rows),
         "cpu_s": 0.9 * i * seconds / 10 / rows * (1 + 0.1 * i / rows), "steal_s": 0.01 * (i // 9),
         "major_faults": 0, "minor_faults": 10 * i, "read_bytes": 0, "write_bytes": 0}
        for i in range(rows)
    ]  # fmt: skip


def rating(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    best = max((each["expressways"] for each in steps if each["passed"]), default=0)
    return {
        "sentence": f"L = {best} at 10 times the pace: every answer right and in time"
        if best else "no L passed: answers came too late",
        "passed": best > 0, "expressways": best, "speed": 10.0, "quick": False, "confirmed": True,
        "base": {"expressways": 10, "minutes": 180, "reports": 120_116_496, "vehicles": 1_387_224,
                 "queries": 1_202_060},
        "history_is_shared": True,
        "validated": "right: all 28,053,192 answers by the rules of paper", "threads": 2,
        "machine": {"cpu": "AMD EPYC", "cores": 2, "memory_bytes": 25_200_000_000,
                    "system": "Linux 6.1", "python": "3.11.7",
                    "date": "2026-02-03T04:05:06+00:00", "command": "xstream linearroad rate"},
        "version": "0.1.0",
        "memory": [["vehicles on the road", 9_000_000, 8_100_000_000],
                   ["accounts", 6_000_000, 5_400_000_000], ["the process", 0, 440_000_000]],
        "steps": list(steps), **more,
    }  # fmt: skip


SEARCH = (step(500), step(1000, passed=False), refused(1400), step(900), step(900, "full"))


def page_of(tmp_path: Path, found: dict[str, Any], *timelines: list[dict[str, float]]) -> str:
    path = tmp_path / "rating.html"
    write_page(path, found, timelines or [[] for _ in found["steps"]])
    return path.read_text()


def words(page: str) -> str:
    """The visible text of the page."""
    return re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.S)


def row_of(page: str, first: str) -> str:
    rows = [row for row in re.findall(r"<tr>.*?</tr>", words(page)) if f">{first}</td>" in row]
    assert rows, first
    return rows[-1]


def test_the_verdict_stands_at_the_top_with_what_it_means(tmp_path: Path) -> None:
    text = words(page_of(tmp_path, rating(*SEARCH)))
    verdict = text.index("L = 900 at 10 times the pace: every answer right and in time")
    assert verdict < text.index("never quoted as a larger L") < text.index("step by step")
    assert "The other 890 are copies" in text
    assert "History is shared" in text
    assert "right: all 28,053,192 answers by the rules of paper" in text
    assert "A full stream of 180 minutes confirmed it" in text


def test_the_page_says_how_it_was_made_and_labels_every_axis(tmp_path: Path) -> None:
    timelines = [timeline(each, 60) if each["wall_s"] else [] for each in SEARCH]
    page = page_of(tmp_path, rating(*SEARCH), *timelines)
    made = "2026-02-03 at 04:05 UTC by <code>xstream linearroad rate</code>"
    check_frame(page, "AMD EPYC, 2 cores, Python 3.11.7, xstream 0.1.0", made)
    assert len(drawn(page)) == 7


def test_every_step_is_in_the_table_with_its_worst_response_times(tmp_path: Path) -> None:
    page = page_of(tmp_path, rating(*SEARCH))
    passed = row_of(page, "500")
    for cell in ("0.250", "0.500", "1.500", "passed", "10.5 GB", "50%", "8.70"):
        assert f">{cell}</td>" in passed, cell
    failed = row_of(page, "1,000")
    assert "class='bad why'>not passed: 1,234 toll notifications came after 5 s" in failed
    assert ">full, minutes 0 to 180</td>" in page


def test_a_refused_step_says_why_and_claims_no_figures(tmp_path: Path) -> None:
    row = row_of(page_of(tmp_path, rating(*SEARCH)), "1,400")
    assert "it would need 29.4 GB of memory" in row
    assert row.count(">-</td>") == 7


def test_the_published_ratings_stand_beside_ours(tmp_path: Path) -> None:
    page = page_of(tmp_path, rating(*SEARCH))
    for system, reached in (("relational System X", "0.5"), ("Aurora", "2.5"), ("SCSQ", "1.5"),
                            ("SQLstream", "60"), ("SEEP", "350"), ("SCSQ-PLR", "512")):  # fmt: skip
        assert f">{reached}</td>" in row_of(page, system)
    ours = row_of(page, "xstream, 10 × pace")
    assert ">900</td>" in ours
    assert "2 cores of AMD EPYC, 25.2 GB" in ours


def test_figures_at_the_top_are_of_the_rating_and_not_of_a_larger_probe(tmp_path: Path) -> None:
    steps = (step(1200), step(1200, "full", passed=False), step(900, "full"))
    text = words(page_of(tmp_path, rating(*steps, expressways=900)))
    assert "<b>900</b>" in text
    assert "<b>18.9 GB</b>" in text


def test_a_quick_rating_is_named_quick_wherever_its_l_is(tmp_path: Path) -> None:
    found = rating(step(500), step(900), quick=True, confirmed=None)
    text = words(page_of(tmp_path, found, timeline(found["steps"][0], 60)))
    assert "by probe runs alone" in text
    for shown in re.findall(r"(?:L = 900|>900\b)[^<]*(?:<[^>]*>[^<]*)?", text):
        assert "quick" in shown, shown


def test_differing_digests_are_shown_in_red_with_their_sentences(tmp_path: Path) -> None:
    sentence = "copy 37 of expressway 3 differs in minute 174: tolls"
    wrong = step(900, "full", passed=False,
                 digests={"compared": 25_000, "different": 2, "first": [sentence]})  # fmt: skip
    text = words(page_of(tmp_path, rating(step(500), wrong)))
    red = text[text.index("<div class='bad'>") :]
    assert "2 of 25,000 digests differ" in red[: red.index("</div>")]
    assert sentence in red[: red.index("</div>")]
    assert "Answers that differ" not in page_of(tmp_path, rating(step(500)))


def test_what_others_wrote_is_text_and_not_markup(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    bad = step(900, passed=False, why=evil, stall=evil, stage_ns={evil: 1.0},
               digests={"compared": 1, "different": 1, "first": [evil]})  # fmt: skip
    found = rating(step(500), bad, sentence=evil, validated=evil, version=evil)
    found["machine"] |= {"cpu": evil, "system": evil}
    found["memory"] = [[evil, 1, 2]]
    page = page_of(tmp_path, found, timeline(step(500), 9), timeline(bad, 9))
    assert "<img" not in page
    assert page.count("&lt;img") >= 9


@pytest.mark.parametrize("steps", [(), (refused(10),), (step(1, passed=False),)],
                         ids=["none", "refused", "too slow"])  # fmt: skip
def test_without_a_step_that_passed_there_is_still_a_page(
    tmp_path: Path, steps: tuple[dict[str, Any], ...]
) -> None:
    text = words(page_of(tmp_path, rating(*steps, confirmed=False, validated=None, memory=[])))
    assert "no L passed: answers came too late" in text
    assert 'class="verdict no"' in text
    assert "not validated" in text
    assert "Aurora" in text


def test_a_long_timeline_is_thinned_and_keeps_its_peak(tmp_path: Path) -> None:
    full = step(900, "full")
    rows = timeline(full, 10_800)
    rows[7_001]["lag_s"] = 4.8125
    page = page_of(tmp_path, rating(full), rows)
    assert "4.8125" in page
    drawn = re.findall(r"<script>figure\(", page)
    assert len(drawn) >= 5
    longest = max(len(y.split(",")) for y in re.findall(r'"y":\[([^\]]*)\]', page))
    assert 100 < longest <= MOST_POINTS


def gathered(tmp_path: Path, found: dict[str, Any], *timelines: list[dict[str, float]]) -> str:
    """The page of `xstream report` over a directory with a rating."""
    page = page_data(found, timelines or [[] for _ in found["steps"]])
    write_json(tmp_path / "rating.json", {"rating": found, "page": page})
    return gathered_page(tmp_path)


def test_a_report_shows_a_rating_as_a_rating(tmp_path: Path) -> None:
    found = rating(*SEARCH)
    page = gathered(tmp_path, found, *(timeline(each, 60) for each in SEARCH))
    text = words(page)
    assert "Linear Road rating: L = 900" in text
    assert "<strong>L = 900 at 10 times the pace: every answer right and in time" in text
    assert "right: all 28,053,192 answers by the rules of paper" in text
    for each in SEARCH:
        assert f">{each['expressways']:,}</td>" in text
    assert "not passed: 1,234 toll notifications came after 5 s" in text
    assert "Response time against L" in text
    drawn = re.findall(r'class="plot" id="(\w+)"', text)
    assert len(drawn) == len(set(drawn)) == 7
    assert "response_s" not in text  # a name of the JSON


def test_a_report_takes_nothing_in_a_rating_for_markup(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    bad = step(900, passed=False, why=evil, stage_ns={evil: 1.0},
               digests={"compared": 1, "different": 1, "first": [evil]})  # fmt: skip
    found = rating(step(500), bad, sentence=evil, validated=evil, version=evil)
    found["machine"] |= {"cpu": evil}
    page = gathered(tmp_path, found, timeline(step(500), 9), timeline(bad, 9))
    assert "<img" not in page
    assert page.count("&lt;img") >= 5


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"title": "t", "sections": 3, "machine": {}},
        {"title": "t", "machine": {}, "sections": [{"table": {"columns": ["a"]}}]},
        {"title": "t", "machine": {}, "sections": [{"title": "p", "plots": [{"data": 3}]}]},
    ],
)
def test_a_page_that_cannot_be_shown_is_one_sentence(tmp_path: Path, page: dict[str, Any]) -> None:
    write_json(tmp_path / "rating.json", {"rating": {}, "page": page})
    with pytest.raises(InputError, match=r"rating\.json is not a valid result file"):
        gathered_page(tmp_path)


@pytest.mark.chromium
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("size", ["1200,900", "390,844"])
def test_a_browser_draws_it(tmp_path: Path, size: str) -> None:
    path = tmp_path / "rating.html"
    timelines = [timeline(each, 60) if each["wall_s"] else [] for each in SEARCH]
    write_page(path, rating(*SEARCH), timelines)
    page = path.read_text()
    assert "<script src=" not in page
    assert "<link" not in page
    document = rendered(path, tmp_path / "profile", size)
    assert document.count('class="plot js-plotly-plot"') == 7
    assert "L = 900 at 10 times the pace" in document
