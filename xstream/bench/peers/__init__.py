"""The same work on other engines, each a program that runs in its own process.

A peer is a file `on_<name>.py`. It gets a job (the recording, the benchmark, the file with our
numba kernels) and prints one line of JSON: for each variant its trials in samples per second, and a
digest of the output of one pass, which must equal ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xstream.bench.children import run_child
from xstream.bench.trials import Result, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from xstream.bench.queries import Declared
    from xstream.bench.settings import Settings

__all__ = ["PEERS", "digest", "measure_peers"]

#: Name, program, interpreter. GNU Radio is installed for the Python of the system.
PEERS = (
    ("GNU Radio", "on_gnuradio.py", "/usr/bin/python3"),
    ("bytewax", "on_bytewax.py", sys.executable),
    ("streamz", "on_streamz.py", sys.executable),
    ("polars", "on_polars.py", sys.executable),
    ("duckdb", "on_duckdb.py", sys.executable),
    ("Spark", "on_spark.py", sys.executable),
)
_HERE = Path(__file__).parent
_LIMIT_SECONDS = 300


def digest(samples: npt.NDArray[Any]) -> str:
    """Return a digest of samples."""
    return hashlib.sha256(np.ascontiguousarray(samples, np.float32).tobytes()).hexdigest()


def measure_peers(
    benchmark: str, declared: Declared, settings: Settings, only: Sequence[str] = ()
) -> tuple[dict[str, Result], list[str]]:
    """Return results by peer and variant, and a sentence for each peer that has none."""
    found: dict[str, Result] = {}
    missing: list[str] = []
    wanted = digest(declared.reference())
    with tempfile.TemporaryDirectory(prefix="xstream-peers-", ignore_cleanup_errors=True) as folder:
        recording = Path(folder, "recording.npy")
        np.save(recording, np.ascontiguousarray(declared.recording, np.float32))
        job = {
            "benchmark": benchmark, "recording": str(recording), "window": declared.window,
            "operators": declared.operators, "alpha": declared.alpha, "beta": declared.beta,
            "seconds": settings.seconds, "trials": min(settings.trials, 5),
            "kernels": str(_HERE.parent / "_statistics.py"),
            "factor": float(getattr(declared, "factor", 1.0)),
        }  # fmt: skip
        peers = [peer for peer in PEERS if not only or peer[0] in only]
        settings.progress.begin(len(peers), "engine")
        for number, (name, program, python) in enumerate(peers):
            settings.progress.update(number, note=name)
            answer = _ask(python, program, job, folder)
            if isinstance(answer, str):
                missing.append(f"{name} {answer}")
                continue
            for way in answer["ways"]:
                if way["digest"] != wanted:
                    raise AssertionError(f"{name}, {way['name']}: its output differs from ours")
                trials = tuple(Trial(round(speed), 1.0) for speed in way["samples_per_second"])
                title = f"{name} {answer['version']}, {way['name']}"
                found[title] = Result(title, trials)
    return found, missing


def _ask(python: str, program: str, job: dict[str, Any], folder: str) -> dict[str, Any] | str:
    """Return the answer of a peer, or the reason why there is none."""
    command = [python, str(_HERE / program), json.dumps(job)]
    # Files that a killed engine leaves behind are deleted with the folder.
    java = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.io.tmpdir={folder}".strip()
    scratch = {"TMPDIR": folder, "SPARK_LOCAL_DIRS": folder, "JDK_JAVA_OPTIONS": java}
    try:
        done = run_child(command, _LIMIT_SECONDS, cwd=folder, env={**os.environ, **scratch})
    except FileNotFoundError:
        return f"is missing: there is no {python}"
    except subprocess.TimeoutExpired:
        return f"was stopped: it took longer than {_LIMIT_SECONDS} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        absent = last.startswith(("ModuleNotFoundError", "ImportError"))
        return f"is missing: {last}" if absent else f"failed: {last}"
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer
