"""The code of the pages on the engine runs and prints what the pages say; links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "first-steps.md",
    "tutorial.md",
    "kernels.md",
    "compilation.md",
    "schedulers.md",
    "sources.md",
)
#: Pages whose links are followed.
LINKED = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "apps").glob("*/README.md")),
]
EXAMPLES = ("channel_cuts.py", "loud_events.py", "records.py", "statfilter.py", "three_ways.py")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def run_script(path: Path, folder: Path) -> str:
    """What a script prints that runs in a folder, where it may write files."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], cwd=folder,
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / page).read_text())
    code = "\n\n".join(text for language, text in blocks if language == "python")
    said = "".join(
        text
        for (before, _), (language, text) in pairwise(blocks)
        if language == "text" and before == "python"
    )
    script = tmp_path / f"{Path(page).stem}_page.py"
    script.write_text(code)
    assert run_script(script, tmp_path) == said


def anchors(text: str) -> set[str]:
    """The anchors of a page: those of its headings, as GitHub makes them, and its own."""
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    made = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'<a id="([\w-]+)">', text))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([\w-]+))?\)", page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there.read_text()), f"{target}#{anchor}"


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, tmp_path: Path) -> None:
    assert run_script(ROOT / "examples" / example, tmp_path).strip()


def test_the_example_system_is_as_short_as_its_page_says() -> None:
    lines = (ROOT / "examples" / "linearroad_system.py").read_text().splitlines()
    page = (ROOT / "docs" / "benchmark-your-system.md").read_text()
    assert f"a complete system of {len(lines)} lines of plain Python" in page


def test_loud_events_are_found_in_a_file(tmp_path: Path) -> None:
    """Five words of the recording, as rows of a table and as sound."""
    import soundfile

    run_script(ROOT / "examples" / "loud_events.py", tmp_path)
    rows = [line.split(",") for line in (tmp_path / "events.csv").read_text().split()[1:]]
    assert len(rows) == 5
    sound, rate_hz = soundfile.read(tmp_path / "events.wav")
    assert rate_hz == 44_100
    assert len(sound) == sum(int(stop) - int(start) for start, stop, _ in rows)


def test_channels_are_cut_around_the_tones(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run_script(ROOT / "examples" / "channel_cuts.py", tmp_path)
    recording = pq.read_table(tmp_path / "array.parquet").to_pydict()
    cuts = pq.read_table(tmp_path / "cuts.parquet").to_pydict()
    assert len(cuts["index"]) == 4 * 2592
    for name in ("north", "east", "south", "west"):
        assert cuts[name] == [recording[name][i] for i in cuts["index"]]
    for begin_s in (2.0, 7.5, 11.25, 18.0):
        assert round(begin_s * 8_000) in cuts["index"]


def test_the_picture_of_the_first_steps_is_that_of_its_query(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "first-steps.md").read_text())
    code = "\n\n".join(text for language, text in blocks if language == "python")
    script = tmp_path / "loud.py"
    script.write_text(code)
    run_script(script, tmp_path)
    assert (tmp_path / "loud.svg").read_text() == (ROOT / "docs" / "first-query.svg").read_text()
