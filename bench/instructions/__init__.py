"""Instructions of five core paths, counted by callgrind (`python -m bench.instructions`).

Counts do not depend on the speed or the load of a machine: on the same toolchain they repeat
within 0.02 %, so 3 % more is a change of the code. They do depend on the compiler and the C
library. `counts.json` therefore has counts by toolchain, and a toolchain that it does not have is
shown without a verdict. The paths are those of `paths.c`, compiled with the flags of the package.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["LIMIT", "PATHS", "counted", "differences", "stored", "toolchain"]

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
STORED = HERE / "counts.json"
PATHS = ("append", "subseg", "hops", "queues", "rewindow")
#: The share by which a count may grow.
LIMIT = 0.03
ROOMS = ("sigseg", "engine", "sched", "kernels", "ops")
#: As in hatch_build.py; without -fPIC, as the paths are a program.
FLAGS = ("-std=gnu11", "-O3", "-g1", "-fno-semantic-interposition", "-DNDEBUG", "-pthread")
#: The same copies on every processor: glibc chooses its own by what the processor can do.
SAME_COPIES = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM"

Counts = dict[str, int]


def compiler() -> list[str]:
    """The compiler that builds the package."""
    return shlex.split(os.environ.get("CC") or "cc")


def toolchain() -> str:
    """The architecture, the compiler and the C library, by which counts are stored."""
    said = subprocess.run(
        [*compiler(), "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]
    library = " ".join(platform.libc_ver()) or "unknown C library"
    return f"{platform.machine()}, {said}, {library}"


def counted(root: Path = ROOT) -> Counts:
    """Compile the paths with the core below `root`, and count each of them."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "paths"
        core = [path for room in ROOMS for path in sorted((root / "xstream" / room).glob("*.c"))]
        subprocess.run(
            [*compiler(), *FLAGS, f"-I{root / 'xstream'}", str(HERE / "paths.c"),
             *map(str, core), "-o", str(program), "-lm"],
            check=True,
        )  # fmt: skip
        return {path: _instructions(program, path) for path in PATHS}


def _instructions(program: Path, path: str) -> int:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise FileNotFoundError("valgrind is not installed (Debian: apt install valgrind)")
    done = subprocess.run(
        [valgrind, "--tool=callgrind", "--toggle-collect=measured",
         "--callgrind-out-file=/dev/null", str(program), path],
        capture_output=True, text=True, check=True,
        env={**os.environ, "GLIBC_TUNABLES": SAME_COPIES},
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise ValueError(f"callgrind printed no count:\n{done.stderr}")
    return int(found[1])


def stored(chain: str) -> Counts | None:
    """The counts of a toolchain; None if it is not known."""
    counts: dict[str, Counts] = json.loads(STORED.read_text())
    return counts.get(chain)


def store(chain: str, counts: Counts) -> None:
    """Keep the counts of a toolchain, beside those of others."""
    known: dict[str, Counts] = json.loads(STORED.read_text()) if STORED.exists() else {}
    STORED.write_text(json.dumps({**known, chain: counts}, indent=2, sort_keys=True) + "\n")


def differences(before: Counts, after: Counts, limit: float = LIMIT) -> list[str]:
    """What has grown by more than the limit, in words.

    >>> differences({"append": 1000, "hops": 500}, {"append": 1040, "hops": 400})
    ['append takes 4.0 % more instructions: 1,040 instead of 1,000']
    """
    return [
        f"{path} takes {100 * (after[path] / count - 1):.1f} % more instructions: "
        f"{after[path]:,} instead of {count:,}"
        for path, count in before.items()
        if after.get(path, 0) > count * (1 + limit)
    ]
