"""`@xs.compiled`: machine code in the cache of kernels, found again and never stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xstream as xs

SCRIPT = """
import numpy as np, xstream as xs
import shared

SCALE = 2.0

@xs.compiled
def near(x):
    return x + 1.0

@xs.compiled(error_model="numpy")
def mine(values):
    total = 0.0
    for i in range(len(values)):
        total += near(values[i]) * SCALE + shared.far(values[i])
    return total

found = mine(np.arange(4.0))
print(sum(mine.stats.cache_hits.values()), sum(mine.stats.cache_misses.values()), found)
"""
SHARED = """
import xstream as xs
LEVEL = 10.0

def deeper(x):
    return x * 3

deeper = xs.compiled(deeper)

@xs.compiled
def far(x):
    return deeper(x) + LEVEL
"""


class Program:
    """A script and a module beside it, with a cache of their own."""

    def __init__(self, home: Path) -> None:
        self.home, self.cache = home, home / "cache"
        self.write(SCRIPT, SHARED)

    def write(self, script: str, shared: str) -> None:
        (self.home / "script.py").write_text(script)
        (self.home / "shared.py").write_text(shared)
        shutil.rmtree(self.home / "__pycache__", ignore_errors=True)  # edits within one second

    def run(self, **environment: str) -> tuple[bool, float]:
        """Whether the code was loaded from the cache, and the result."""
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=self.home, capture_output=True, text=True,
            env={**os.environ, "XSTREAM_CACHE_DIR": str(self.cache), **environment},
            timeout=120, check=True,
        )  # fmt: skip
        hits, misses, found = done.stdout.split()
        assert int(hits) + int(misses) == 1
        return hits == "1", float(found)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_every_edit_compiles_again_in_whichever_file_it_is(program: Program) -> None:
    right = 2.0 * 10 + 3 * 6 + 40
    assert program.run() == (False, right)
    assert program.run() == (True, right)
    program.write(SCRIPT, SHARED.replace("x * 3", "x * 4"))
    assert program.run() == (False, right + 6), "a helper of a helper in another file"
    program.write(SCRIPT, SHARED.replace("LEVEL = 10.0", "LEVEL = 11.0"))
    assert program.run() == (False, right + 4), "a global of another file"
    program.write(SCRIPT.replace("SCALE = 2.0", "SCALE = 3.0"), SHARED)
    assert program.run() == (False, right + 10), "a global"
    program.write(SCRIPT.replace("x + 1.0", "x + 2.0"), SHARED)
    assert program.run() == (False, right + 8), "a helper beside it"
    program.write("# a comment moves every line\n" + SCRIPT, SHARED)
    assert program.run() == (True, right)


def test_damaged_code_is_compiled_again_and_repaired(program: Program) -> None:
    _, right = program.run()
    codes = list(program.cache.glob("k*.code"))
    assert codes
    for path in codes:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert program.run() == (False, right)
    assert program.run() == (True, right)
    for path in codes:
        path.write_bytes(b"")
    assert program.run() == (False, right)


def test_a_directory_that_others_may_write_to_is_not_read(program: Program) -> None:
    program.run()
    program.cache.chmod(0o777)
    assert not program.run(PYTHONWARNINGS="ignore")[0]


@xs.compiled(inline="always")
def doubled(value):
    return 2 * value


@xs.compiled
def total_of_doubles(values):
    total = 0
    for value in values:
        total += doubled(value)
    return total


def test_kernels_call_compiled_functions() -> None:
    @xs.kernel
    def twice(window):
        return total_of_doubles(window)

    query = xs.Query()
    out = query.source(xs.io.array(np.arange(8), window=4)).map(twice).collect()
    assert query.run()[out] == [12, 44]
    assert total_of_doubles.py_func(np.arange(4)) == 12
