"""Each room of xstream uses only rooms below it; applications use only what is public."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import xstream as xs

ROOT = Path(__file__).resolve().parents[1]
#: Lowest first, as in the docstring of `xstream`. `query` has modules beside it.
ROOMS = [
    "errors",
    "console",
    "_native",
    "sigseg",
    "engine",
    "sched",
    "kernels",
    "ops",
    "query",
    "io",
    "testing",
    "bench",
    "report",
    "cli",
]
BESIDE = {
    "stream": "query",
    "run": "query",
    "drawing": "query",
    "workers": "query",
    "__main__": "cli",
}
MODULES = sorted(path for path in (ROOT / "xstream").rglob("*.py") if path.parent != ROOT)
APPS = sorted((ROOT / "apps").rglob("*.py"))
C_FILES = sorted((ROOT / "xstream" / "sigseg").glob("*.[ch]"))


def room_of(part: str) -> str:
    return BESIDE.get(part, part)


def imports(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and imported name of every import, wherever it stands in the file."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, module, alias.name) for alias in node.names)


def imported_room(module: str, name: str | None) -> str | None:
    """The room that an import reaches, or None where it is not ours."""
    parts = module.split(".")
    if parts[0] != "xstream":
        return None
    if len(parts) > 1:
        return room_of(parts[1])
    if name is None:
        return "cli"  # the whole package: only something above all rooms may want that
    if name in xs._LAZY:
        return room_of((xs._LAZY[name] + ".").split(".")[1] or name)
    return room_of(name) if room_of(name) in ROOMS else "errors"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_rooms_listed_before_it(path: Path) -> None:
    mine = room_of(path.relative_to(ROOT / "xstream").with_suffix("").parts[0])
    if mine == "__init__":
        return  # the package itself names them all
    assert mine in ROOMS, f"{path} is in no room: list it in ROOMS and in xstream's docstring"
    for line, module, name in imports(path):
        theirs = imported_room(module, name)
        if theirs is not None:
            assert theirs in ROOMS, f"{path}:{line}: {module} is in no room"
            assert ROOMS.index(theirs) <= ROOMS.index(mine), (
                f"{path}:{line}: {mine} may not use {theirs}, which is above it"
            )


@pytest.mark.parametrize("path", C_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_segments_in_c_know_nothing_of_operators_and_plans(path: Path) -> None:
    for include in re.findall(r'#include "([^"]+)"', path.read_text()):
        target = (path.parent / include).resolve()
        assert target.exists(), f"{path} includes {include}, which is not there"
        assert target.parent == path.parent, f"{path} includes {include}"


@pytest.mark.parametrize("path", APPS, ids=lambda path: str(path.relative_to(ROOT)))
def test_applications_use_only_public_names(path: Path) -> None:
    names_of_xstream = {"xstream"}
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "xstream":
                    names_of_xstream.add(alias.asname or alias.name)
    for line, module, name in imports(path):
        if module.split(".")[0] == "xstream":
            private = [part for part in [*module.split("."), name or ""] if part.startswith("_")]
            assert not private, f"{path}:{line}: {private[0]} is private to xstream"
            if module == "xstream" and name is not None:
                assert name in xs.__all__ or name in ROOMS, f"{path}:{line}: {name} is not public"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            reaches_in = node.value.id in names_of_xstream and node.attr.startswith("_")
            assert not reaches_in or node.attr.endswith("__"), f"{path}:{node.lineno}: {node.attr}"


def test_pyspark_is_imported_in_one_module_only() -> None:
    importers = {
        path.relative_to(ROOT)
        for path in [*MODULES, *APPS]
        if path.parent.name != "peers"  # programs, each in a process of its own
        for _, module, _ in imports(path)
        if module.split(".")[0] == "pyspark"
    }
    assert len(importers) <= 1, importers


def test_the_docstring_of_xstream_names_the_rooms_in_this_order() -> None:
    assert xs.__doc__ is not None
    named = re.findall(r"^    xstream\.(\w+) ", xs.__doc__, flags=re.M)
    assert named == ROOMS


def test_a_wrong_import_is_noticed(tmp_path: Path) -> None:
    """The checks above read what they should: tried on an import that breaks the order."""
    wrong = ROOT / "xstream" / "sigseg" / "segment.py"
    text = "def f():\n    from xstream.kernels import kernel\n    from xstream import Query\n"
    found = [imported_room(module, name) for _, module, name in _imports_of(text, wrong)]
    assert found == ["kernels", "query"]
    assert all(ROOMS.index(room or "") > ROOMS.index("sigseg") for room in found)


def _imports_of(text: str, path: Path) -> list[tuple[int, str, str | None]]:
    class Pretended:
        def relative_to(self, root: Path) -> Path:
            return path.relative_to(root)

        def read_text(self) -> str:
            return text

    return list(imports(Pretended()))  # type: ignore[arg-type]
