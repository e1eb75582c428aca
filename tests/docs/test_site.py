"""The pages that are generated for the site name every public name and every command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import xstream as xs

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHROMIUM = shutil.which("chromium")


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of docs/_ext by its name."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))

    def loaded(name: str) -> Any:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return loaded


def test_every_public_name_is_in_the_reference(extension: Any) -> None:
    reference = extension("reference_pages")
    text = "\n".join(reference.pages().values())
    found = set(re.findall(r"^\.\. (?:autoclass|autofunction|py:data):: ([\w.]+)$", text, re.M))
    wanted = {f"xstream.{name}" for name in set(xs.__all__) - reference.ELSEWHERE}
    wanted |= {f"xstream.io.{name}" for name in xs.io.__all__}
    wanted |= {f"xstream.testing.{name}" for name in xs.testing.__all__}
    assert found == wanted


def test_a_name_on_no_page_is_an_error(extension: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xs, "__all__", [*xs.__all__, "quux"])
    with pytest.raises(ValueError, match=r"names on no page: \['quux'\]"):
        extension("reference_pages").pages()


def test_every_command_and_option_is_in_the_command_reference(extension: Any) -> None:
    from xstream.cli import _command

    text = "\n".join(extension("command_pages").pages().values())
    waiting, seen = [("xstream", _command())], 0
    while waiting:
        path, command = waiting.pop()
        assert re.search(rf"^#+ {path}$", text, re.M), path
        for param in command.params:
            if param.opts[0].startswith("--") and not getattr(param, "hidden", False):
                assert f"`{param.opts[0]}" in text or f"{param.opts[0]} " in text, param.opts
        waiting += [
            (f"{path} {name}", each) for name, each in getattr(command, "commands", {}).items()
        ]
        seen += 1
    assert seen > 40


def test_every_page_of_the_folder_is_in_the_contents() -> None:
    contents = (DOCS / "index.md").read_text()
    listed = set(re.findall(r"^([\w-]+)$", contents, re.M))
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= listed


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_search_works_without_a_server(
    tmp_path: Path,
) -> None:
    site = tmp_path / "site"
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going",
         "-d", str(tmp_path / "trees"), "-b", "html", str(DOCS), str(site)],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert not loaded, f"{page.name} loads {loaded}"
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the search was not tried")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=10000", "--dump-dom",
         (site / "search.html").as_uri() + "?q=rewindow"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert 'href="generated/reference-queries.html#xstream.Stream.rewindow"' in done.stdout
