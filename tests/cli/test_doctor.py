"""`xstream doctor`: every part gets a line, and what is missing gets a remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.apps.command import call
from xstream.cli import diagnosis
from xstream.cli.diagnosis import BROKEN, MISSING, OK, Finding
from xstream.console import OPTIONAL_PACKAGES

PARTS = ["Python", "xstream", "native core", "packages", "C compiler", "Java", "Chromium",
         "PostgreSQL", "valgrind", "kernel cache", "machine", "a query"]  # fmt: skip
EXTRAS = sorted({package.extra for package in OPTIONAL_PACKAGES.values()})


def doctor(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`python -m xstream doctor` in an environment with these variables."""
    return subprocess.run(
        [sys.executable, "-m", "xstream", "doctor", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **variables},
    )  # fmt: skip


def test_each_part_gets_a_line_and_queries_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "doctor") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PARTS) + len(EXTRAS)
    for name in [*PARTS, *(f"extra {extra}" for extra in EXTRAS)]:
        (line,) = [line for line in lines if f" {name} " in line]
        assert line.split()[0] in (OK, MISSING)
    assert "the first result after" in lines[-1]


def test_optional_programs_that_are_missing_are_no_failure(tmp_path: Path) -> None:
    said = doctor("--json", PATH=str(tmp_path), JAVA_HOME="", CC="")
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert told["working"] is True
    found = {each["name"]: each for each in told["findings"]}
    for name, package in (("C compiler", "gcc"), ("Java", "openjdk"), ("Chromium", "chromium"),
                          ("valgrind", "valgrind")):  # fmt: skip
        assert found[name]["status"] == MISSING
        assert f"apt install {package}" in found[name]["fix"]
    assert found["a query"]["status"] == OK


def test_a_cache_that_others_can_write_to_is_broken(tmp_path: Path) -> None:
    cache = tmp_path / "kernels"
    cache.mkdir()
    cache.chmod(0o777)
    said = doctor(XSTREAM_CACHE_DIR=str(cache))
    assert said.returncode == 1
    (line,) = [line for line in said.stdout.splitlines() if "kernel cache" in line]
    assert line.startswith(BROKEN)
    assert "others may write to it" in line
    assert "set XSTREAM_CACHE_DIR" in line
    assert "Traceback" not in said.stderr


def test_an_old_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.9" if name == "numba" else real(name))
    found = diagnosis._dependencies()
    assert found.status == BROKEN
    assert found.found.startswith("numba 0.9 is older than ")
    assert found.fix == "run pip install --upgrade numba"


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_that_is_missing_is_named_with_its_remedy(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert diagnosis._requirements(extra)

    def nothing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", nothing)
    found = dict(zip(EXTRAS, (check() for check in diagnosis._extras()), strict=True))[extra]
    assert found.status == MISSING
    assert f"pip install 'xstream[{extra}]'" in found.fix


def test_a_core_that_is_missing_or_outdated_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from xstream import _native

    with monkeypatch.context() as patch:
        # The file of the core as it would be before a change of all sources.
        patch.setattr(Path, "stat", _dated(Path.stat, Path(_native.__file__)))
        assert "is older than" in diagnosis._core().found
    monkeypatch.setitem(sys.modules, "xstream._native", None)
    monkeypatch.delattr("xstream._native")
    found = diagnosis._core()
    assert found.status == BROKEN
    assert "make install" in found.fix


def _dated(real: Any, core: Path) -> Any:
    """`Path.stat` by which the core was built in 1970."""

    class Old:
        st_mtime = 0.0

    return lambda path, **options: Old if path == core else real(path, **options)


def test_a_query_that_fails_or_is_wrong_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[float]:
        raise RuntimeError("no core")

    monkeypatch.setattr(diagnosis, "_run_query", fail)
    assert diagnosis._query()[:3] == ("a query", BROKEN, "RuntimeError: no core")
    monkeypatch.setattr(diagnosis, "_run_query", lambda: [1.0])
    assert diagnosis._query().status == BROKEN


@pytest.mark.parametrize(
    ("said", "status"),
    [('openjdk version "17.0.15" 2025-04-15', OK), ('java version "1.8.0_392"', MISSING),
     ('openjdk version "11.0.2"', MISSING), (None, MISSING), ("gibberish", MISSING)],
)  # fmt: skip
def test_java_must_be_new_enough(
    said: str | None, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_first_line", lambda *command: said)
    assert diagnosis._java().status == status


def test_a_finding_is_plain_data() -> None:
    assert Finding("a", OK, "b").to_json() == {"name": "a", "status": OK, "found": "b", "fix": ""}
