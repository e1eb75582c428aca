"""docs/operators.md: its examples run, and it leaves out no operator."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import xstream as xs

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
#: Methods of a stream that are no operators.
OTHERS = {"then"}


def test_the_examples_of_the_page_run() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 30
    assert result.failed == 0


def test_the_table_has_every_operator() -> None:
    table = "\n".join(line for line in PAGE.read_text().splitlines() if line.startswith("| `"))
    first_column = " ".join(line.split("|")[1] for line in table.splitlines())
    named = set(re.findall(r"(\w+)\(", first_column))
    methods = {
        name for name, _ in inspect.getmembers(xs.Stream, inspect.isfunction) if name[0] != "_"
    }
    assert named == methods - OTHERS


def test_every_method_of_a_stream_has_an_example_that_calls_it_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tests/test_package.py` runs the examples of all docstrings too, but not those inherited."""
    monkeypatch.chdir(tmp_path)  # some write files
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for name, method in inspect.getmembers(xs.Stream, inspect.isfunction):
        if name[0] == "_":
            continue
        (found,) = finder.find(method, name)
        assert any(f".{name}(" in example.source for example in found.examples), name
        assert runner.run(found).failed == 0, name
