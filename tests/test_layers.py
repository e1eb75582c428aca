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
    "live",
    "cli",
]
BESIDE = {
    "graph": "query",
    "stream": "query",
    "partition": "query",
    "run": "query",
    "assembly": "query",
    "failure": "query",
    "statistics": "query",
    "drawing": "query",
    "layout": "query",
    "notebook": "query",
    "picture": "query",
    "snapshot": "query",
    "views": "query",
    "fusion": "query",
    "results": "query",
    "recovery": "query",
    "__main__": "cli",
}
MODULES = sorted(path for path in (ROOT / "xstream").rglob("*.py") if path.parent != ROOT)
APPS = sorted((ROOT / "apps").rglob("*.py"))
C_FILES = sorted((ROOT / "xstream").rglob("*.[ch]"))


def room_of(part: str) -> str:
    return BESIDE.get(part, part)


def imports(path: Path, executed: bool = False) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and imported name of every import, wherever it stands in the file.

    Those inside functions count, and those under TYPE_CHECKING as well: a room that names the types
    of another one knows of it. Where `executed`, the latter are left out.
    """
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if executed and id(node) in typing_only:
            continue
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


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_cycle(imported: dict[str, set[str]]) -> list[str] | None:
    """Modules that import each other in a circle, or None."""
    done: set[str] = set()

    def search(module: str, path: list[str]) -> list[str] | None:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return None
        for other in sorted(imported[module]):
            found = search(other, [*path, module])
            if found is not None:
                return found
        done.add(module)
        return None

    cycles = (search(module, []) for module in sorted(imported))
    return next((cycle for cycle in cycles if cycle is not None), None)


def test_no_modules_import_each_other() -> None:
    """Not inside functions either. Types of one room may name each other.

    The package itself is left out: it loads the names of all rooms when they are asked for.
    """
    modules = {module_of(path): path for path in MODULES}
    imported: dict[str, set[str]] = {name: set() for name in modules if name != "xstream"}
    for module, reached in imported.items():
        for _, theirs, name in imports(modules[module], executed=True):
            whole = theirs if name is None else f"{theirs}.{name}"
            reached |= {whole if whole in imported else theirs} & set(imported) - {module}
    assert import_cycle(imported) is None


def test_an_import_cycle_is_found() -> None:
    assert import_cycle({"a": {"b"}, "b": {"c"}, "c": set()}) is None
    assert import_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def included_rooms(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """What a C file includes of ours, and the rooms that those files are in."""
    for include in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, flags=re.M):
        target = (path.parent / include).resolve()
        assert target.exists(), f"{path} includes {include}, which is not there"
        yield include, target.relative_to(ROOT / "xstream").parts[0]


@pytest.mark.parametrize("path", C_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_c_file_includes_only_headers_of_its_room_and_of_those_before_it(path: Path) -> None:
    mine = path.relative_to(ROOT / "xstream").parts[0]
    for include, theirs in included_rooms(path, path.read_text()):
        assert ROOMS.index(theirs) <= ROOMS.index(mine), f"{path} includes {include}"


def test_the_rooms_in_c_are_compiled_and_read_here() -> None:
    assert {path.parent.name for path in C_FILES} == {
        *("sigseg", "engine", "sched", "kernels", "ops", "io")
    }
    header = ROOT / "xstream" / "engine" / "engine.h"
    wrong = '#include "plan.h"\n#include "../sched/run.h"\n'
    assert [room for _, room in included_rooms(header, wrong)] == ["engine", "sched"]
    assert ROOMS.index("sched") > ROOMS.index("engine")


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
    assert importers == {Path("apps/linearroad/spark.py")}


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


def test_imports_for_types_count_as_use_and_not_as_a_cycle() -> None:
    text = "if TYPE_CHECKING:\n    from xstream.query import Query\nimport xstream.run\n"
    path = ROOT / "xstream" / "sigseg" / "segment.py"
    assert [module for _, module, _ in _imports_of(text, path)] == ["xstream.run", "xstream.query"]
    assert [module for _, module, _ in _imports_of(text, path, executed=True)] == ["xstream.run"]


def _imports_of(text: str, path: Path, executed: bool = False) -> list[tuple[int, str, str | None]]:
    class Pretended:
        def relative_to(self, root: Path) -> Path:
            return path.relative_to(root)

        def read_text(self) -> str:
            return text

    return list(imports(Pretended(), executed))  # type: ignore[arg-type]
