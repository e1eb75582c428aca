"""Every public name and member has documentation, and an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from xstream.engine.operator import Operator

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODULES = {"xs": xs, "xs.io": xs.io, "xs.testing": xs.testing}


def public_names() -> dict[str, Any]:
    """Every name in an `__all__`, except for the modules themselves."""
    found = {
        f"{module}.{name}": getattr(value, name)
        for module, value in MODULES.items()
        for name in value.__all__
    }
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines, or a base that is not public.

    As in the reference, what an operator is to the engine does not count.
    """
    public = {id(value) for value in (*public_names().values(), Operator)} - {id(cls)}
    own = {
        name: value
        for base in reversed(cls.__mro__)
        if base.__module__.startswith(("xstream.", __name__)) and id(base) not in public
        for name, value in vars(base).items()
    }
    for name, value in own.items():
        known = isinstance(value, property | classmethod | staticmethod) or callable(value)
        if known and not name.startswith("_"):
            yield name, getattr(cls, name)


def is_documented_here(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


def example_of(value: Any) -> str:
    """The code of the examples of a docstring."""
    text = inspect.getdoc(value) or ""
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return importlib.import_module("reference_pages")


def test_every_name_and_member_has_documentation_and_an_example(reference: Any) -> None:
    without: list[str] = []
    counted = 0
    for name, value in public_names().items():
        counted += 1
        short = name.rpartition(".")[2]
        if not is_documented_here(value):
            if not (reference.TEXTS.get(short) and ">>>" in reference.EXAMPLES.get(short, "")):
                without.append(name)
            continue
        own = example_of(value)
        of_members = [example_of(member) for _, member in members(value)] if (
            inspect.isclass(value)
        ) else []  # fmt: skip
        if not inspect.getdoc(value) or not (own or any(of_members)):
            without.append(name)
        for member_name, member in members(value) if inspect.isclass(value) else ():
            counted += 1
            used = re.search(rf"\.{member_name}\b", own + "".join(of_members))
            shown = example_of(member) or used
            if not inspect.getdoc(member) or not shown:
                without.append(f"{name}.{member_name}")
    assert without == []
    assert counted > 170


def test_examples_are_in_modules_whose_examples_run() -> None:
    """`test_package` runs the examples of all modules below `xstream` that have any."""
    from tests.test_package import WITH_EXAMPLES

    for name, value in public_names().items():
        if is_documented_here(value) and example_of(value):
            assert inspect.getmodule(value).__name__ in WITH_EXAMPLES, name  # type: ignore[union-attr]


def test_no_example_is_skipped() -> None:
    for name, value in public_names().items():
        inside = members(value) if inspect.isclass(value) else ()
        for each in (value, *(member for _, member in inside)):
            assert "doctest: +SKIP" not in (inspect.getdoc(each) or ""), name


def test_the_examples_of_the_reference_run(reference: Any) -> None:
    assert set(reference.EXAMPLES) == set(reference.TEXTS)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for name, text in reference.EXAMPLES.items():
        runner.run(parser.get_doctest(text, {"np": np, "xs": xs}, name, name, 0))
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries >= 8


def test_the_count_finds_a_name_without_an_example() -> None:
    class Bare:
        """Documented."""

        def call(self) -> None:
            """Documented, too."""

    class Derived(Bare):
        """Documented."""

    assert example_of(Bare) == ""
    assert [name for name, _ in members(Bare)] == ["call"]
    assert [name for name, _ in members(Derived)] == ["call"]  # Bare is not public
