"""What commands have in common: help, progress, and outputs that are checked first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apps.command import call
from xstream import console
from xstream.cli import _command, app
from xstream.console import progress as progress_room


def commands(command: Any, name: str = "xstream") -> Iterator[tuple[str, Any]]:
    yield name, command
    for each, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {each}")


def test_flags_are_shown_without_a_type_and_required_options_are_marked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, command in commands(_command()):
        with pytest.raises(SystemExit):
            command(["--help"], prog_name=name)
        shown = capsys.readouterr().out
        assert "<bool>" not in shown, name
        required = [param for param in command.params if param.required]
        assert shown.count("[required]") == len(required), name


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("bench", "pipeline", "--trials", "2", "--seconds", "0.001", "--json"),
         ("pipeline: preparation 1", "pipeline: trial 3 of 3 (100 %)")),
        (("profile", "pipeline", "--trials", "1", "--seconds", "0.001", "--json"),
         ("profile: trial 8 of 8", "profile: profiled run 4 of 4")),
        (("leaks", "evaluate", "--seconds", "10", "--json"), ("evaluate: level 9 of 9",)),
        (("leaks", "find", "main.npy", "--json"), ("find: sample 480,000 of 480,000",)),
    ],
)  # fmt: skip
def test_long_commands_show_how_far_they_are_on_stderr(
    arguments: tuple[str, ...],
    lines: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "main.npy" in arguments:
        assert call(monkeypatch, "leaks", "generate", "main.npy") == 0
        capsys.readouterr()
    monkeypatch.setattr(progress_room, "QUIET_S", 0.0)
    monkeypatch.setattr(progress_room, "LINE_EVERY_S", 0.0)
    assert call(monkeypatch, *arguments) == 0
    said = capsys.readouterr()
    json.loads(said.out)
    for line in lines:
        assert line in said.err


def test_the_tree_of_commands_is_built_once() -> None:
    """A program that calls `main` again would else have every application once more."""
    first = _command()
    assert _command() is first
    groups = [group.name for group in app.registered_groups]
    assert sorted(groups) == sorted(set(groups))


@pytest.mark.parametrize("out", ["/proc/none/report.html", "/dev/null/report.html"])
def test_a_report_that_cannot_be_written_is_refused_first(
    out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def never(folder: Path) -> str:
        raise AssertionError("the work was done before the output was checked")

    monkeypatch.setattr("xstream.report.gathered.gathered_page", never)
    assert call(monkeypatch, "report", tmp_path, "--out", out) == 2
    said = capsys.readouterr().err
    assert f"xstream: {out} cannot be written" in said
    assert len(said.splitlines()) == 1


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "page.html"

    def cut_short() -> None:
        with console.whole_file(path) as part:
            part.write_text("half a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_short()
    assert not list(path.parent.iterdir())
    with console.whole_file(path) as part:
        part.write_text("a page")
    assert [each.name for each in path.parent.iterdir()] == ["page.html"]
    with console.whole_file(Path("/dev/null")) as part:
        assert part == Path("/dev/null")  # a device is not replaced
