"""Runs the tests of the core built with AddressSanitizer and UBSan (`make asan`).

The package is copied into a scratch folder beside a sanitized `_native`, with its tests, and
pytest runs there, once for each part: the product itself has no hook for this.
`python tests/run_sanitized.py --part engine` runs one part; further arguments are passed on to
pytest. Leaks are not asked of Python, which keeps memory on purpose; the tests check that every
manager's live blocks go back to 0, and the C stress of tests/native runs with leak detection.

Code that numba compiles is not sanitized, so tests that only add to it are left out; kernels run
in the parts `engine` and `operators`. Property tests draw fewer examples here: every allocation
takes several times as long as usual.
"""

from __future__ import annotations

import argparse
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
ROOMS = (
    "sigseg",
    "engine",
    "ops",
    "io",
    "fuzz",
    "reference",
    "apps",
    "linearroad",
    "recovery",
    "chaos",
)
#: What runs together: tests, and what they are run with.
PARTS = {
    "segments": ["tests/sigseg"],
    "engine": ["tests/engine"],
    "io": ["tests/io"],
    "recovery": ["tests/recovery"],
    "network": [f"tests/linearroad/{name}" for name in ("wire", "driver", "service")],
    "operators": [
        f"tests/ops/test_{name}.py"
        for name in (
            "harness",
            "rewindow",
            "ranges",
            "rates",
            "join",
            "together",
            "aggregate",
            "relation",
            "hold",
            "memory_runs_out",
        )
    ],
}
#: Processes that start processes, and what compiles much and runs little of the core.
SKIPPED = (
    "tests/engine/test_kernel_cache.py",
    "tests/engine/test_debug.py",
    "tests/recovery/test_overload.py",
)
#: So that the sanitizer sees Python's own blocks as well.
MALLOC = {"PYTHONMALLOC": "malloc"}
#: Examples that a property test draws; examples and steps in all of the stateful one.
EXAMPLES = 12
STATEFUL = (25, 1_500)
#: Operators of a deep graph.
DEEP = 5_000
CONFTEST = f'''"""Property tests draw fewer examples under the sanitizers."""

from hypothesis import settings


def pytest_collection_modifyitems(items):
    for item in items:
        test = getattr(item, "obj", None)
        drawn = getattr(test, "_hypothesis_internal_use_settings", None)
        if drawn is not None and drawn.max_examples > {EXAMPLES} and item.cls is None:
            test._hypothesis_internal_use_settings = settings(drawn, max_examples={EXAMPLES})
        if item.module.__name__.endswith("test_stateful"):
            item.module.EXAMPLES, item.module.STEPS = {STATEFUL}
        if item.module.__name__.endswith("test_deep_graphs"):
            item.module.DEEP = {DEEP}
'''


def preloaded() -> str:
    """The sanitizer's runtime, which must be loaded before Python allocates anything.

    That of C++ comes behind it: the sanitizer looks for it when Arrow throws its first exception.
    """
    compiler = shlex.split(os.environ.get("CC", "cc"))
    found = []
    for name in ("libasan.so", "libstdc++.so.6"):
        answer = subprocess.run(
            [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        )
        found.append(Path(answer.stdout.strip()))
    if not found[0].is_absolute():
        sys.exit(
            f"make asan needs the AddressSanitizer runtime of '{compiler[0]}', which was not "
            "found: install it (it comes with gcc on Debian and as libasan on Fedora)."
        )
    return " ".join(str(library.resolve()) for library in found if library.is_absolute())


def lay_out(tree: Path) -> None:
    """The package, its tests and the settings, with a sanitized core."""
    shutil.copytree(ROOT / "xstream", tree / "xstream", ignore=LEFT_OUT)
    shutil.copytree(ROOT / "examples", tree / "examples", ignore=LEFT_OUT)
    for room in ROOMS:
        shutil.copytree(ROOT / "tests" / room, tree / "tests" / room, ignore=LEFT_OUT)
    for name in ("__init__.py", "fresh.py"):
        shutil.copy(ROOT / "tests" / name, tree / "tests")
    (tree / "tests" / "conftest.py").write_text(CONFTEST)
    shutil.copy(ROOT / "pyproject.toml", tree)
    build = [sys.executable, "hatch_build.py", "--sanitize", str(tree / "xstream")]
    subprocess.run(build, cwd=ROOT, check=True)


def run_part(name: str, tree: Path, environment: dict[str, str], further: list[str]) -> int:
    """Pytest's exit code for one part."""
    print(f"== {name}: {' '.join(PARTS[name])}", flush=True)
    skipped = [f"--ignore={path}" for path in SKIPPED]
    pytest = [sys.executable, "-m", "pytest", "--timeout=1200", "-m", "not slow", *skipped]
    command = [*pytest, *further, *PARTS[name]]
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def main() -> int:
    """Build, run, and give the first exit code of pytest that is not 0."""
    parser = argparse.ArgumentParser(description="Run tests under AddressSanitizer and UBSan.")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part")
    chosen, further = parser.parse_known_args()
    environment = {
        **os.environ,
        "LD_PRELOAD": preloaded(),
        # Short stacks of allocations: numba and Python allocate all the time.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:malloc_context_size=6",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    with tempfile.TemporaryDirectory(prefix="xstream-sanitized-") as scratch:
        tree = Path(scratch)
        lay_out(tree)
        where = "import xstream._native as native; print('testing', native.__file__)"
        subprocess.run([sys.executable, "-c", where], cwd=tree, env=environment, check=True)
        # Python's own small blocks are seen too where segments meet its objects.
        codes = [
            run_part(
                name, tree, environment | MALLOC if name == "segments" else environment, further
            )
            for name in chosen.part or PARTS
        ]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
