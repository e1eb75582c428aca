"""The package as its users meet it: names, examples, commands, wheel, and what is missing."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import xstream as xs

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"numba", "pyspark", "plotly", "numpy", "pandas", "pyarrow", "scipy"}
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "xstream").rglob("*.py")
    if ">>>" in path.read_text()
)


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )


# -- names ---------------------------------------------------------------------------------------


def test_all_is_complete_and_every_name_is_there() -> None:
    assert len(set(xs.__all__)) == len(xs.__all__)
    for name in xs.__all__:
        assert getattr(xs, name) is not None, name
        assert name in dir(xs)
    declared = set(xs._LAZY)
    tree = ast.parse((ROOT / "xstream" / "__init__.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xstream"):
            names = {alias.asname or alias.name for alias in node.names}
            declared |= {name for name in names if not name.startswith("_")}
    assert declared | {"__version__"} == set(xs.__all__)


def test_rooms_and_the_version_are_attributes() -> None:
    code = "import xstream as xs; print(xs.testing.__name__, xs.io.__name__, xs.__version__)"
    said = run(sys.executable, "-c", code).stdout
    assert re.fullmatch(r"xstream\.testing xstream\.io \d+\.\d+\.\d+\n", said)
    assert {"io", "testing", "__version__"} <= set(dir(xs))


def test_every_error_is_public_and_in_the_tree() -> None:
    errors = importlib.import_module("xstream.errors")
    for name in errors.__all__:
        assert name in xs.__all__
        assert issubclass(getattr(errors, name), xs.XStreamError)
        assert re.search(rf"\b{name}\b", errors.__doc__ or ""), f"{name} is not in the drawn tree"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'xstream' has no attribute 'quux'"):
        _ = xs.quux


def test_the_package_is_typed() -> None:
    assert (ROOT / "xstream" / "py.typed").exists()


# -- examples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)  # some write files
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_docstrings_do_have_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for cls in (xs.SigSeg, xs.Timebase, xs.MemoryManager):
        assert any(test.examples for test in finder.find(cls)), cls


def test_the_example_of_the_readme_runs() -> None:
    readme = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    assert examples
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    tried = 0
    for number, example in enumerate(examples):
        test = parser.get_doctest(example, {}, f"README.md, example {number + 1}", "README.md", 0)
        tried += runner.run(test).attempted
    assert runner.summarize(verbose=False).failed == 0
    assert tried >= 5


# -- commands ------------------------------------------------------------------------------------

LOADED = """
import runpy, sys
sys.argv = ["xstream", *{arguments!r}]
try:
    {action}
except SystemExit as done:
    assert not done.code, done.code
print("heavy:", sorted({heavy!r} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("import xstream", []),
        ("import xstream; dir(xstream); xstream.__version__", []),
        ("from xstream.cli import main; main()", ["--help"]),
        ("from xstream.cli import main; main()", ["--version"]),
    ],
    ids=["import", "version attribute", "help", "version"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(action: str, arguments: list[str]) -> None:
    code = LOADED.format(action=action, arguments=arguments, heavy=HEAVY)
    result = run(sys.executable, "-c", code)
    assert result.stdout.rstrip().endswith("heavy: []"), result.stdout + result.stderr


def test_the_command_line_tells_its_version_and_its_commands() -> None:
    command = Path(sys.executable).with_name("xstream")
    version = run(command, "--version")
    assert re.fullmatch(r"xstream \d+\.\d+\.\d+\n", version.stdout), version
    for option in ("--help", "-h"):
        shown = run(command, option)
        assert shown.returncode == 0
        assert "linearroad" in shown.stdout
    module = run(sys.executable, "-m", "xstream", "--version")
    assert module.stdout == version.stdout
    wrong = run(command, "quux")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


# -- installing ----------------------------------------------------------------------------------


@pytest.fixture
def bare_project(tmp_path: Path) -> Path:
    """The project before its first install."""
    for name in ("Makefile", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def sentence_of(result: subprocess.CompletedProcess[str]) -> str:
    """What make says on stderr before its own line."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert result.returncode != 0
    assert len(lines) == 1, result.stderr
    return lines[0]


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("target", ["install", "test", "demo"])
def test_a_missing_compiler_gets_one_sentence(target: str, bare_project: Path) -> None:
    result = run("make", target, f"PYTHON={sys.executable}", cwd=bare_project,
                 env={**os.environ, "CC": "no-such-cc -O2"})  # fmt: skip
    assert sentence_of(result) == (
        "xstream needs a C compiler and 'no-such-cc' was not found: install one (Debian: apt "
        "install gcc; Fedora: dnf install gcc; macOS: xcode-select --install), or name yours in CC."
    )
    assert not (bare_project / ".venv").exists()


def test_the_build_hook_says_the_same(bare_project: Path) -> None:
    result = run(sys.executable, "hatch_build.py", cwd=bare_project,
                 env={**os.environ, "CC": "no-such-cc"})  # fmt: skip
    assert "xstream needs a C compiler and 'no-such-cc' was not found" in sentence_of(result)


def test_a_python_that_is_too_old_gets_one_sentence(bare_project: Path) -> None:
    body = 'case "$1" in -V) echo "Python 3.9.2";; *) exit 1;; esac'
    old = script(bare_project / "old-python", body)
    result = run("make", "install", f"PYTHON={old}", cwd=bare_project)
    assert sentence_of(result) == (
        f"xstream needs Python 3.11 or newer, and {old} is Python 3.9.2: install a newer one, "
        "or run make PYTHON=/path/to/python3."
    )


def test_a_missing_python_gets_one_sentence(bare_project: Path) -> None:
    result = run("make", "install", "PYTHON=no-such-python", cwd=bare_project)
    assert sentence_of(result) == (
        "xstream needs Python 3.11 or newer and 'no-such-python' was not found: install it, "
        "or run make PYTHON=/path/to/python3."
    )


def test_a_second_install_does_nothing(bare_project: Path) -> None:
    """All that counts as installed is there and newer than what it is made from."""
    (bare_project / ".venv").mkdir()
    for mark in (".installed", ".native"):
        (bare_project / ".venv" / mark).touch()
    result = run("make", "install", "PYTHON=no-such-python", cwd=bare_project)
    assert result.returncode == 0, result.stderr
    assert "Nothing to be done" in result.stdout


@pytest.mark.slow
def test_the_wheel_has_the_core_and_both_packages_and_no_c_sources(tmp_path: Path) -> None:
    source = tmp_path / "source"
    unwanted = shutil.ignore_patterns(".git", ".venv", "*.so", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, source, ignore=unwanted)
    built = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, source)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("xstream-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "py3-none-any" not in wheel.name
    assert any(re.fullmatch(r"xstream/_native\..*\.so", name) for name in names)
    assert {"xstream/__init__.py", "xstream/py.typed", "linearroad/__init__.py"} <= set(names)
    assert not [name for name in names if name.endswith((".c", ".h"))]
    assert not [name for name in names if name.startswith(("tests", "bench", "apps"))]
