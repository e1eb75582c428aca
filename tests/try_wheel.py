"""Tries a wheel as a newcomer would (`make dist`): python tests/try_wheel.py dist/*.whl

The wheel is installed into a fresh environment without a compiler on the PATH. There a first query
runs (cold: with an empty cache of kernels; warm: once more), a picture is drawn, and `xstream
doctor` says that queries run. `--limits` also holds the times to 20 s cold, from the start of the
installation, and 2 s warm; on a busy machine they say nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from time import perf_counter
from typing import Any

COLD_S, WARM_S, IMPORT_S = 20.0, 2.0, 0.1
#: The query of the first five minutes (docs/install.md), and its picture.
QUERY = """
import numpy as np, xstream as xs

@xs.kernel
def louder(window, alpha):
    return np.std(window) > alpha

noise = np.random.default_rng(1).normal(size=40_960).astype(np.float32)
noise[:8192] *= 0.01
q = xs.Query("loud")
source = q.source(xs.io.array(noise, rate_hz=44_100.0, window=1024))
out = source.rewindow(4096).filter(louder, 0.02).mean().collect()
assert len(q.run()[out]) == 8
picture = q.draw()
assert picture.startswith("<svg"), picture[:80]
open("loud.svg", "w").write(picture)
"""
IMPORT = "from time import perf_counter as now; t = now(); import xstream; print(now() - t)"


def run(*command: str | Path, **options: Any) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def tried(wheel: Path, no_compile: bool) -> dict[str, float]:
    """The times of the installation, the first and the second query, and the import."""
    with tempfile.TemporaryDirectory(prefix="xstream-wheel-") as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        programs = home / "env" / "bin"
        surroundings = {
            name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "CC")
        }  # fmt: skip
        surroundings |= {
            "PATH": str(programs), "HOME": folder, "XSTREAM_CACHE_DIR": f"{home}/kernels",
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", _pip_cache()),
        }  # fmt: skip
        (home / "kernels").mkdir(mode=0o700)
        (home / "first.py").write_text(QUERY)
        where = {"cwd": folder, "env": surroundings}
        began = perf_counter()
        run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            *(["--no-compile"] if no_compile else []),
            wheel.resolve(), **where)  # fmt: skip
        installed = perf_counter()
        run(programs / "python", "first.py", **where)
        cold = perf_counter()
        run(programs / "python", "first.py", **where)
        warm = perf_counter()
        assert (home / "loud.svg").read_text().endswith("</svg>")
        version = run(programs / "python", "-m", "xstream", "--version", **where)
        assert version == run(programs / "xstream", "--version", **where)
        found = json.loads(run(programs / "xstream", "doctor", "--json", **where))
        status = {each["name"]: each["status"] for each in found["findings"]}
        assert found["working"], found
        assert status["C compiler"] == "missing", status
        imports = [float(run(programs / "python", "-c", IMPORT, **where)) for _ in range(5)]
    return {
        "install_s": installed - began, "cold_s": cold - installed, "cold_in_all_s": cold - began,
        "warm_s": warm - cold, "import_s": min(imports),
    }  # fmt: skip


def _pip_cache() -> str:
    return run(sys.executable, "-m", "pip", "cache", "dir").strip()


def main() -> None:
    """Print the times; with `--limits`, fail if one is too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--no-compile", action="store_true", help="install as docs/first-steps.md")
    options = parser.parse_args()
    times = tried(options.wheel, options.no_compile)
    for name, seconds in times.items():
        print(f"{name:14} {seconds:8.3f}")
    limits = {"cold_in_all_s": COLD_S, "warm_s": WARM_S, "import_s": IMPORT_S}
    late = [name for name, limit in limits.items() if times[name] > limit]
    if options.limits and late:
        raise SystemExit(f"too slow: {', '.join(late)}")


if __name__ == "__main__":
    main()
