"""Runs the tests of the core built with AddressSanitizer and UBSan (`make asan`).

The package is copied into a scratch folder beside a sanitized `_native`, with its tests, and
pytest runs there: the product itself has no hook for this. Arguments are passed on to pytest.
Leaks are not asked of Python, which keeps memory on purpose; the tests check that every manager's
live blocks go back to 0, and the C stress of tests/native runs with leak detection.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns("*.so", "*.c", "*.h", "__pycache__")
#: Tests that reach the core; `reference` is what those of the operators compare with.
ROOMS = ("sigseg", "engine", "ops", "reference")
#: What sanitizers cannot see more in, and take long over: processes that start processes, pages.
SKIPPED = ("tests/engine/test_kernel_cache.py", "tests/ops/test_operator_page.py")


def runtime_library() -> str:
    """The sanitizer's runtime, which must be loaded before Python allocates anything."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    answer = subprocess.run(
        [*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    library = Path(answer.stdout.strip())
    if not library.is_absolute():
        sys.exit(
            f"make asan needs the AddressSanitizer runtime of '{compiler[0]}', which was not "
            "found: install it (it comes with gcc on Debian and as libasan on Fedora)."
        )
    return str(library.resolve())


def lay_out(tree: Path) -> None:
    """The package, its tests and the settings, with a sanitized core."""
    shutil.copytree(ROOT / "xstream", tree / "xstream", ignore=LEFT_OUT)
    for room in ROOMS:
        shutil.copytree(ROOT / "tests" / room, tree / "tests" / room, ignore=LEFT_OUT)
    shutil.copy(ROOT / "tests" / "__init__.py", tree / "tests")
    shutil.copy(ROOT / "pyproject.toml", tree)
    build = [sys.executable, "hatch_build.py", "--sanitize", str(tree / "xstream")]
    subprocess.run(build, cwd=ROOT, check=True)


def main() -> int:
    """Build, run, and give pytest's exit code."""
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime_library(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that it sees Python's own blocks too
    }
    with tempfile.TemporaryDirectory(prefix="xstream-sanitized-") as scratch:
        tree = Path(scratch)
        lay_out(tree)
        where = "import xstream._native as native; print('testing', native.__file__)"
        subprocess.run([sys.executable, "-c", where], cwd=tree, env=environment, check=True)
        skipped = [f"--ignore={path}" for path in SKIPPED]
        pytest = [sys.executable, "-m", "pytest", "--timeout=1200", "-m", "not slow", *skipped]
        pytest += sys.argv[1:]
        return subprocess.run(pytest, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
