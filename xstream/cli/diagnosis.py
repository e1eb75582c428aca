"""What `xstream doctor` looks at: each check returns one finding, and never raises."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from xstream.console import OPTIONAL_PACKAGES

__all__ = ["BROKEN", "MISSING", "OK", "Finding", "examine"]

#: It works; an optional part is not there; a required part does not work.
OK, MISSING, BROKEN = "ok", "missing", "broken"

ABSENT = " is not installed"
OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
#: Programs under which a browser for screenshots may be installed.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: Where Debian puts PostgreSQL's server programs, which are not on the PATH.
POSTGRESQL_HOMES = "/usr/lib/postgresql/*/bin"


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    status: str
    found: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """Return plain data."""
        return self._asdict()


def examine() -> Iterator[Finding]:
    """Make all checks, the quick ones first."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python, _version, _core, _dependencies, *_extras(), _compiler, _java, _browser,
        _postgresql, _valgrind, _cache, _resources, _query,
    )  # fmt: skip
    for check in checks:
        yield check()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("Python", BROKEN, version, f"install Python {oldest} or newer")
    return Finding("Python", OK, f"{version}, {sys.executable}")


def _version() -> Finding:
    home = Path(__file__).resolve().parents[1]
    try:
        return Finding("xstream", OK, f"{metadata.version('xstream')}, {home}")
    except metadata.PackageNotFoundError:
        return Finding("xstream", BROKEN, f"not installed, {home}", "run pip install .")


def _core() -> Finding:
    rebuild = "run make install in the source tree, or pip install --force-reinstall xstream"
    try:
        from xstream import _native
    except ImportError as error:
        return Finding("native core", BROKEN, f"cannot be loaded: {error}", rebuild)
    built = Path(_native.__file__)
    sources = [*built.parent.glob("*/*.c"), *built.parent.glob("*/*.h")]
    newer = [path for path in sources if path.stat().st_mtime > built.stat().st_mtime]
    if newer:
        found = f"{built.name} is older than {newer[0].parent.name}/{newer[0].name}"
        return Finding("native core", BROKEN, found, "run python hatch_build.py")
    return Finding("native core", OK, built.name)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparisons.

    >>> _numbers("2.10.1rc1") > _numbers("2.9")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _requirements(extra: str | None = None) -> list[tuple[str, str]]:
    """The packages that xstream, or one of its extras, requires, with their oldest versions."""
    found = []
    for line in metadata.requires("xstream") or ():
        text, _, marker = line.partition(";")
        named = re.search(r"""extra == ['"](\w+)['"]""", marker)
        if (named[1] if named else None) != extra:
            continue
        name = re.match(r"[\w.-]+", text)
        oldest = re.search(r">=\s*([\w.]+)", text)
        if name:
            found.append((name[0], oldest[1] if oldest else "0"))
    return found


def _installed(requirements: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Installed packages with their versions, and what is wrong with the others."""
    good, wrong = [], []
    for name, oldest in requirements:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            wrong.append(name + ABSENT)
            continue
        if _numbers(version) < _numbers(oldest):
            wrong.append(f"{name} {version} is older than {oldest}")
        good.append(f"{name} {version}")
    return good, wrong


def _dependencies() -> Finding:
    try:
        good, wrong = _installed(_requirements())
    except metadata.PackageNotFoundError:
        return Finding("packages", BROKEN, "xstream is not installed", "run pip install .")
    if wrong:
        fix = "run pip install --upgrade " + " ".join(line.split()[0] for line in wrong)
        return Finding("packages", BROKEN, ", ".join(wrong), fix)
    return Finding("packages", OK, ", ".join(good))


def _extras() -> list[Callable[[], Finding]]:
    """One check per extra that installs an optional package."""
    uses: dict[str, list[str]] = {}
    for extra, used_by in OPTIONAL_PACKAGES.values():
        uses.setdefault(extra, []).append(used_by)

    def check(extra: str) -> Finding:
        name = f"extra {extra}"
        try:
            good, wrong = _installed(_requirements(extra))
        except metadata.PackageNotFoundError:
            good, wrong = [], ["xstream is not installed"]
        if wrong:
            needed = " and ".join(dict.fromkeys(uses[extra]))
            found = f"{_together(wrong)}; needed for {needed}"
            return Finding(name, MISSING, found, f"run pip install 'xstream[{extra}]'")
        return Finding(name, OK, ", ".join(good))

    return [lambda extra=extra: check(extra) for extra in sorted(uses)]  # type: ignore[misc]


def _together(wrong: list[str]) -> str:
    """One phrase for all packages that are absent.

    >>> _together(["duckdb is not installed", "plotly 5 is older than 6", "zmq is not installed"])
    'duckdb, zmq are not installed, plotly 5 is older than 6'
    """
    absent = [line.removesuffix(ABSENT) for line in wrong if line.endswith(ABSENT)]
    others = [line for line in wrong if not line.endswith(ABSENT)]
    if absent:
        others.insert(0, f"{', '.join(absent)} {'are' if absent[1:] else 'is'} not installed")
    return ", ".join(others)


def _first_line(*command: str) -> str | None:
    """The first line that a program prints; None if it is not there or fails."""
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=False, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (asked.stdout + asked.stderr).strip().splitlines()
    return lines[0].strip() if lines and asked.returncode == 0 else None


def _compiler() -> Finding:
    command = shlex.split(os.environ.get("CC") or "cc") or ["cc"]
    said = _first_line(*command, "--version")
    if said is None:
        found = f"'{command[0]}' does not run; needed to build from source and for some benchmarks"
        fix = "install one (Debian: apt install gcc libc6-dev), or name yours in CC"
        return Finding("C compiler", MISSING, found, fix)
    return Finding("C compiler", OK, said)


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    said = _first_line(program, "-version")
    need = "needed for Spark: Linear Road's generator and validator"
    fix = f"install Java {OLDEST_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
    if said is None:
        return Finding("Java", MISSING, f"'{program}' does not run; {need}", fix)
    version = re.search(r'"(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        return Finding("Java", MISSING, f"{said} is too old; {need}", fix)
    return Finding("Java", OK, said)


def _program(name: str, path: str | None, need: str, package: str) -> Finding:
    """A program that only some features use."""
    if path is None:
        fix = f"install it (Debian: apt install {package})"
        return Finding(name, MISSING, f"not found; needed for {need}", fix)
    return Finding(name, OK, _first_line(path, "--version") or path)


def _browser() -> Finding:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return _program("Chromium", path, "screenshots of pages in tests", "chromium")


def _postgresql() -> Finding:
    homes = sorted(Path("/").glob(POSTGRESQL_HOMES.lstrip("/")))
    path = shutil.which("postgres") or next(
        (found for home in reversed(homes) if (found := shutil.which("postgres", path=str(home)))),
        None,
    )
    return _program("PostgreSQL", path, "Linear Road on PostgreSQL", "postgresql")


def _valgrind() -> Finding:
    path = shutil.which("valgrind")
    return _program("valgrind", path, "instruction counts of benchmarks", "valgrind")


def _cache() -> Finding:
    import warnings

    from xstream.kernels._cache import cache_directory, trusted_directory

    directory = cache_directory()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        usable = trusted_directory()
    name = "kernel cache"
    if usable is None or not os.access(usable, os.W_OK):
        why = str(said[0].message).split(";")[0] if said else f"{directory} cannot be written"
        fix = "set XSTREAM_CACHE_DIR to a directory of your own with mode 700"
        return Finding(name, BROKEN, f"{why}; every start compiles again", fix)
    files = [path for path in usable.rglob("*") if path.is_file()]
    kernels = sum(path.suffix == ".py" for path in files)
    size_mb = sum(path.stat().st_size for path in files) / 1e6
    return Finding(name, OK, f"{kernels} kernels, {size_mb:.1f} MB, {usable}")


def _resources() -> Finding:
    import tempfile

    import psutil

    folder = tempfile.gettempdir()
    memory, disk = psutil.virtual_memory(), shutil.disk_usage(folder)
    found = (
        f"{len(os.sched_getaffinity(0))} cores, {memory.available / 2**30:.1f} of "
        f"{memory.total / 2**30:.1f} GiB of memory free, {disk.free / 2**30:.1f} GiB free in "
        f"{folder}"
    )
    if disk.free < 2**30:
        return Finding("machine", MISSING, found, f"free at least 1 GiB in {folder}, or set TMPDIR")
    return Finding("machine", OK, found)


def _query() -> Finding:
    """Run a query through the compiler, the native core and the cache."""
    from time import perf_counter

    began = perf_counter()
    try:
        answer = _run_query()
    except Exception as error:
        return Finding("a query", BROKEN, f"{type(error).__name__}: {error}", "see the lines above")
    if answer != [0.5, 2.5]:
        return Finding("a query", BROKEN, f"the result is {answer}, not [0.5, 2.5]", "report it")
    return Finding("a query", OK, f"the first result after {perf_counter() - began:.1f} s")


def _run_query() -> list[Any]:
    import numpy as np

    import xstream as xs

    query = xs.Query()
    samples = np.arange(4, dtype=np.float32)
    out = query.source(xs.io.array(samples, rate_hz=1.0, window=2)).mean().collect()
    return [float(mean) for mean in query.run()[out]]
