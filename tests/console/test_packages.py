"""Optional packages: each is in an extra, and a missing one gets one sentence before any work."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import xstream as xs
from tests.apps.command import call
from tests.test_layers import APPS, MODULES, imports
from xstream.console import OPTIONAL_PACKAGES, require_package

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    """The modules of requirements."""
    packages = {re.split(r"[<>=\[]", each)[0].replace("-", "_") for each in requirements}
    return {{"pyzmq": "zmq"}.get(package, package) for package in packages}


def test_every_optional_package_is_in_the_extra_that_its_sentence_names() -> None:
    for package, (extra, _) in OPTIONAL_PACKAGES.items():
        assert package in names(EXTRAS[extra])
    extras = {extra for extra in EXTRAS if extra not in ("all", "dev", "docs", "peers")}
    assert {name for extra in extras for name in names(EXTRAS[extra])} == set(OPTIONAL_PACKAGES)
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything)) - {"xstream"} == extras


def test_every_import_is_of_a_package_that_is_declared_and_every_declared_one_is_imported() -> None:
    ours = {"xstream", *(path.name for path in (ROOT / "apps").iterdir())}
    used = {
        module.split(".")[0]
        for path in [*MODULES, *APPS]
        # programs of other engines, each in its own process
        if "peers" not in path.parts and path.name != "bytewax_adapter.py"
        for _, module, _ in imports(path)
    } - ours
    third_party = {name for name in used if name not in sys.stdlib_module_names}
    # cffi loads the compiled core, llvmlite is a part of numba, and Spark's workers import pandas.
    assert third_party - {"llvmlite"} | {"cffi", "pandas"} == names(PROJECT["dependencies"]) | set(
        OPTIONAL_PACKAGES
    )


def test_a_package_that_is_installed_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "soundfile", raising=False)
    require_package("soundfile")
    assert "soundfile" not in sys.modules


def test_the_error_is_an_import_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(xs.MissingPackageError) as raised:
        require_package("plotly")
    assert isinstance(raised.value, ImportError)
    assert isinstance(raised.value, xs.XStreamError)


def test_strategies_without_hypothesis_get_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(xs.MissingPackageError, match=r"run pip install 'xstream\[testing\]'$"):
        xs.testing.streams()


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("plotly", "report results"),
        ("plotly", "experiment table1"),
        ("plotly", "experiment all"),
        ("plotly", "profile pipeline --html page.html"),
        ("plotly", "linearroad demo --out demo"),
        ("plotly", "linearroad validate --input traffic --output answers --report"),
        ("plotly", "linearroad rate --base traffic"),
        ("soundfile", "bench statfilter --input sound.wav"),
        ("soundfile", "detectaudio generate sound.wav"),
        ("soundfile", "detectaudio find sound.wav"),
        ("pyspark", "linearroad generate --minutes 1 --out traffic"),
        ("pyspark", "linearroad demo --out demo"),
        ("pandas", "linearroad demo --out demo"),
    ],
)
def test_a_missing_package_gets_one_sentence_before_any_work(
    package: str,
    arguments: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    assert call(monkeypatch, *arguments.split()) == 2
    said = capsys.readouterr()
    extra, used_by = OPTIONAL_PACKAGES[package]
    assert said.err.strip() == (
        f"xstream: {package} (for {used_by}) is not installed: run pip install 'xstream[{extra}]'"
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not files
