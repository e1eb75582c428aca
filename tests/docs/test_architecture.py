"""docs/architecture.md names only files that exist, and README.md links to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
#: A path from the root of the project, in a table or in the picture.
NAMED = re.compile(r"\b(?:apps|bench|docs|examples|tests|xstream)/[\w./]*\w")
#: The extension module is a file whose name depends on the platform.
BUILT = "xstream/_native"


def named_paths() -> list[str]:
    return sorted(set(NAMED.findall(PAGE.read_text())) - {BUILT})


@pytest.mark.parametrize("path", named_paths())
def test_a_path_that_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_page_names_the_files_of_both_ways() -> None:
    files = [path for path in named_paths() if path.endswith((".py", ".c"))]
    assert sum(path.startswith("xstream/") for path in files) >= 15
    assert sum(path.startswith("apps/linearroad/") for path in files) >= 15


def test_the_readme_links_to_the_page() -> None:
    assert "](docs/architecture.md)" in (ROOT / "README.md").read_text()
