"""Compiles the native core: one extension module, `xstream._native`, through cffi's API mode.

Hatchling calls the hook for wheels and editable installs alike. Run as a script it rebuilds the
module in place, which is what the Makefile does when a C source changes:

    python hatch_build.py                     # optimised
    python hatch_build.py --sanitize DIR      # AddressSanitizer and UBSan, into DIR
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script from an environment without hatchling
    BuildHookInterface = object  # type: ignore[assignment,misc]

ROOT = Path(__file__).resolve().parent
#: The public headers, lowest layer first: what C includes and what cffi parses.
HEADERS = (
    "xstream/sigseg/sigseg.h",
    "xstream/engine/operator.h",
    "xstream/engine/plan.h",
    "xstream/engine/image.h",
    "xstream/sched/run.h",
    "xstream/kernels/kernel.h",
    "xstream/kernels/rolling.h",
    "xstream/ops/operators.h",
    "xstream/io/io.h",
    "xstream/io/net.h",
    "xstream/io/pages.h",
)
ROOMS = ("sigseg", "engine", "sched", "kernels", "ops", "io")
#: Python functions that the core calls (xstream/engine/python.c, xstream/io/paced.c, drain.c).
CALLBACKS = """
extern "Python+C" int32_t xs_python_process(int64_t token);
extern "Python+C" int32_t xs_python_produce(int64_t token);
extern "Python+C" int32_t xs_python_finish(int64_t token);
extern "Python+C" int64_t xs_io_clock(int64_t token, int64_t due_ns);
extern "Python+C" int32_t xs_io_look_up(int64_t token);
"""
OPTIMISED = ["-O3", "-g1", "-fno-plt", "-fno-semantic-interposition", "-DNDEBUG"]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
             "-fno-omit-frame-pointer"]  # fmt: skip


def headers() -> list[Path]:
    return [path for name in HEADERS if (path := ROOT / name).exists()]


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / "xstream" / room).glob("*.c"))


def declarations(header: Path) -> str:
    """The header as cffi reads it: no preprocessor lines, no static inline bodies."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(command[0]) is None:
        sys.exit(
            f"xstream needs a C compiler and '{command[0]}' was not found: install one "
            "(Debian: apt install gcc; Fedora: dnf install gcc; macOS: xcode-select --install), "
            "or name yours in CC."
        )
    return command


def compile_native(target_dir: Path, sanitize: bool = False) -> Path:
    """Build `_native` into `target_dir` and return its path; replaced only when complete."""
    from cffi import FFI

    command = compiler()
    ffi = FFI()
    for header in headers():
        ffi.cdef(declarations(header))
    ffi.cdef(CALLBACKS)
    preamble = "\n".join(f'#include "{path}"' for path in headers())
    ffi.set_source("xstream._native", preamble)
    target_dir.mkdir(parents=True, exist_ok=True)
    target = target_dir / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    with tempfile.TemporaryDirectory() as scratch:
        glue = Path(scratch) / "_native.c"
        ffi.emit_c_code(str(glue))
        fresh = Path(scratch) / target.name
        flags = SANITIZED if sanitize else OPTIMISED
        warnings = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]
        subprocess.run(
            [*command, "-std=gnu11", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden",
             *flags, *warnings, f"-I{sysconfig.get_path('include')}", str(glue),
             *map(str, sources()), "-o", str(fresh), "-lm"],
            check=True,
        )  # fmt: skip
        # Beside the target first: a rename within one file system replaces it whole.
        beside = target.with_suffix(".new")
        shutil.copy2(fresh, beside)
        beside.replace(target)
    return target


def experiments() -> dict[str, str]:
    """Where a wheel has what stands with the benchmarks: `xstream experiment` finds it in either
    place. Without C sources, as everywhere in a wheel."""
    home = ROOT / "bench/experiments"
    files = (path for path in home.rglob("*") if path.suffix in (".py", ".md", ".csv"))
    return {str(path): f"xstream/experiments/{path.relative_to(home)}" for path in files}


class NativeCoreHook(BuildHookInterface):  # type: ignore[misc,type-arg]
    """Adds the compiled module and the experiments to the wheel; an editable install finds both in
    the source tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        target = compile_native(ROOT / "xstream")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(target.relative_to(ROOT)))
        if version == "standard":
            build_data["force_include"].update(experiments())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sanitize", metavar="DIR", help="build with sanitizers into DIR")
    arguments = parser.parse_args()
    if arguments.sanitize:
        print(compile_native(Path(arguments.sanitize), sanitize=True))
    else:
        print(compile_native(ROOT / "xstream"))


if __name__ == "__main__":
    main()
