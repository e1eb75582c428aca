"""Citations of docs/linear-road-rules.md: every section and reading that is cited exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "linear-road-rules.md"

NUMBER = r"\d+(?:\.\d+)*"
HEADING = re.compile(rf'^<a id="(section-[\d-]+)"></a>\n#+ ({NUMBER})\.? ', re.M)
READING = re.compile(r"^\* \*\*R(\d+)\.\*\*", re.M)
#: "docs/linear-road-rules.md, section 2.4", "..., sections 3 and 5", "..., section 3.3, R43"
CITATION = re.compile(
    rf"linear-road-rules\.md, sections? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)(?:, R(\d+))?"
)
LINK = re.compile(r"linear-road-rules\.md#([\w-]+)")
#: Sections of the paper are cited as "section 3.1.1 of the paper" or "the paper's section 3.1.1".
OF_THE_PAPER = re.compile(rf"paper's sections? {NUMBER}|sections? {NUMBER} of the paper", re.I)
ANY_SECTION = re.compile(rf"\bsections? {NUMBER}", re.I)


def citing_files() -> Iterator[Path]:
    """All text in which the page may be cited, the page and this module aside."""
    for folder in ("apps", "bench", "docs", "examples", "tests", "xstream"):
        for suffix in ("*.py", "*.md", "*.c", "*.h"):
            yield from (ROOT / folder).rglob(suffix)
    yield from (ROOT / "README.md", ROOT / "CHANGELOG.md")


def joined(text: str) -> str:
    """The text with line breaks, and the comment signs that follow them, as single spaces."""
    return re.sub(r"\s*\n\s*(?:#:?|\*|//)?\s*", " ", text)


def texts() -> dict[str, str]:
    """Every file's text by its path, lines joined."""
    return {
        str(path.relative_to(ROOT)): joined(path.read_text())
        for path in citing_files()
        if path not in (PAGE, Path(__file__).resolve())
    }


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text()


@pytest.fixture(scope="module")
def citing() -> dict[str, str]:
    return texts()


def test_sections_have_the_anchors_of_their_numbers_in_order(page: str) -> None:
    found = HEADING.findall(page)
    assert len(found) == len(re.findall(r"^##+ ", page, re.M))
    assert all(anchor == "section-" + number.replace(".", "-") for anchor, number in found)
    numbers = [tuple(map(int, number.split("."))) for _, number in found]
    assert numbers == sorted(set(numbers))
    assert [number for number in numbers if len(number) == 1] == [(k,) for k in range(1, 9)]


def test_readings_are_numbered_without_gaps_and_give_reasons(page: str) -> None:
    numbers = [int(number) for number in READING.findall(page)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert {int(number) for number in re.findall(r"\bR(\d+)\b", page)} == set(numbers)
    for reading in re.split(READING, page)[2::2]:
        assert "*Reason:*" in re.split(r"\n\n|\n\* ", reading)[0], reading[:60]


def test_every_cited_section_and_reading_exists(page: str, citing: dict[str, str]) -> None:
    sections = {number for _, number in HEADING.findall(page)}
    readings = set(READING.findall(page))
    cited = 0
    for path, text in citing.items():
        for numbers, reading in CITATION.findall(text):
            cited += 1
            missing = set(re.findall(NUMBER, numbers)) - sections
            assert not missing, f"{path} cites section {', '.join(missing)}"
            assert not reading or reading in readings, f"{path} cites R{reading}"
    assert cited >= 40


def test_links_into_the_page_have_an_anchor(page: str, citing: dict[str, str]) -> None:
    anchors = {anchor for anchor, _ in HEADING.findall(page)}
    for path, text in {**citing, str(PAGE): joined(page)}.items():
        targets = LINK.findall(text)
        if path == str(PAGE):
            targets = re.findall(r"\]\(#([\w-]+)\)", text)
            assert targets
        assert set(targets) <= anchors, path


def test_no_section_is_cited_without_the_name_of_its_page(citing: dict[str, str]) -> None:
    for path, text in citing.items():
        if "linear" not in path:
            continue
        assert "rules page" not in text, path
        rest = OF_THE_PAPER.sub("", CITATION.sub("", text))
        bare = ANY_SECTION.search(rest)
        assert bare is None, f"{path}: {rest[max(0, bare.start() - 60) : bare.end() + 20]}"


def test_the_page_is_linked_from_the_other_pages() -> None:
    for path in ("README.md", "docs/linear-road-queries.md", "docs/linear-road-validation.md"):
        assert "linear-road-rules.md" in (ROOT / path).read_text(), path
