"""A plan in several parts, each run by a thread, under the compiler's sanitizers."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.native.test_stress import ADDRESS, THREAD, run, sanitizer_works

HERE = Path(__file__).resolve().parent
XSTREAM = HERE.parents[1] / "xstream"

pytestmark = [pytest.mark.sanitizer, pytest.mark.timeout(900)]


def compiled(folder: Path, flags: list[str], name: str = "parts") -> Path:
    """A program here, with the core, but without what needs Python."""
    program = folder / name
    compiler = shlex.split(os.environ.get("CC", "cc"))
    rooms = ("sigseg", "engine", "sched", "kernels", "ops", *(["io"] if name == "links" else []))
    found = [path for room in rooms for path in sorted((XSTREAM / room).glob("*.c"))]
    core = [str(path) for path in found if path.name != "python_memory.c"]
    subprocess.run(
        [*compiler, "-std=gnu11", "-O1", "-g", "-pthread", "-Wall", "-Wextra",
         "-Wno-unused-parameter", "-Wno-missing-field-initializers", f"-I{XSTREAM}", *flags,
         str(HERE / f"{name}.c"), *core, "-o", str(program), "-lm"],
        check=True,
    )  # fmt: skip
    return program


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(THREAD, id="thread", marks=pytest.mark.slow),
        pytest.param(ADDRESS, id="address"),
    ],
)
def test_the_sanitizer_finds_nothing_in_the_rings(tmp_path: Path, flags: list[str]) -> None:
    if not sanitizer_works(tmp_path, flags):
        pytest.skip("this compiler or machine does not support the sanitizer")
    result = run(compiled(tmp_path, flags), "3000")
    assert result.returncode == 0, result.stdout + result.stderr


def test_thousands_of_windows_keep_the_order_of_one_thread(tmp_path: Path) -> None:
    result = run(compiled(tmp_path, []), "10000")
    assert result.returncode == 0, result.stdout + result.stderr
