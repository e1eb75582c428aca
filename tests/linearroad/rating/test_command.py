"""The options of `rate` are checked before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.command import call


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--speed", "nan"),
        ("--speed", "inf"),
        ("--speed", "0"),
        ("--speed", "-3"),
        ("--from", "-1"),
        ("--from", "0"),
        ("--to", "0"),
        ("--threads", "0"),
        ("--threads", "-2"),
        ("--explain", "0"),
    ],
)
def test_numbers_out_of_range_get_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
) -> None:
    base, out = tmp_path / "no-base", tmp_path / "out"
    options = ("--base", base, "--out", out, option, value)
    assert call(monkeypatch, "linearroad", "rate", *options) == 2
    said = capsys.readouterr().err
    assert f"{option} must be from" in said
    assert len(said.strip().splitlines()) == 1
    assert not out.exists()


def test_a_directory_that_cannot_be_written_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    options = ("--base", tmp_path, "--out", tmp_path / "file" / "out")
    assert call(monkeypatch, "linearroad", "rate", *options) == 2
    assert "cannot be written" in capsys.readouterr().err
