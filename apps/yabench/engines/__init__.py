"""Engines: how each is started, and what it needs.

An adapter is a program. Its last argument is a file with its task (JSON: query, vars, size_ms,
slide_ms, policy, only_new, period_ms). It writes `{"ready": true}`, reads items from standard
input, writes one JSON object for each result, and ends when its input ends.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from xstream import InputError

__all__ = ["ENGINES", "Engine", "engine_folder", "engine_of"]

_HERE = Path(__file__).parent
_PEERS = _HERE / "peers"


@dataclass(frozen=True)
class Engine:
    """How an engine is started."""

    name: str
    command: tuple[str, ...]
    #: How items are written to it: json, ntriples or arrow.
    form: str = "json"
    #: The Python package that it needs, and the command that installs it.
    package: str = ""
    install: str = ""
    #: A file that must exist, for engines that are not Python packages.
    needs: Path | None = None
    #: Programs that it starts.
    programs: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """What is missing, as a sentence with the command that installs it; empty if nothing."""
        if self.package and find_spec(self.package) is None:
            return f"{self.name} is not installed: run {self.install}"
        if self.needs is not None and not self.needs.exists():
            return f"{self.name} is not installed: run {self.install}"
        for program in (self.command[0], *self.programs):
            if shutil.which(program) is None:
                return f"{self.name}: there is no program {program}"
        return ""


def _python(name: str, form: str, package: str = "", install: str = "") -> Engine:
    program = str(_HERE / f"{name}_adapter.py")
    return Engine(name, (sys.executable, program), form, package, install)


def engine_folder(name: str) -> Path:
    """Return the folder that an engine is installed into, which nothing else uses."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "xstream" / "yabench" / name


def _faulty(fault: str) -> Engine:
    program = str(_HERE / "faulty_adapter.py")
    return Engine(f"faulty-{fault}", (sys.executable, program, fault))


ENGINES = {
    "xstream": _python("xstream", "arrow"),
    "xstream-rdf": Engine(
        "xstream-rdf",
        (sys.executable, str(_HERE / "xstream_adapter.py"), "--ntriples"),
        "ntriples",
    ),
    "duckdb": _python("duckdb", "arrow", "duckdb", "pip install 'xstream[yabench]'"),
    "bytewax": _python("bytewax", "json", "bytewax", "pip install bytewax"),
    "spark": Engine(
        "spark",
        (sys.executable, str(_PEERS / "spark_adapter.py")),
        "json",
        "pyspark",
        "pip install 'xstream[linearroad]'",
        programs=("java",),
    ),
    "flink": Engine(
        "flink",
        (sys.executable, str(_PEERS / "flink_adapter.py"), str(engine_folder("flink"))),
        "json",
        install="xstream yabench install flink",
        needs=engine_folder("flink") / "pyflink" / "lib",
        programs=("java", "javac"),
    ),
    "rsp-js": Engine(
        "rsp-js",
        ("node", str(_HERE / "rsp_js_adapter.mjs"), str(engine_folder("rsp-js"))),
        "ntriples",
        install="xstream yabench install rsp-js",
        needs=engine_folder("rsp-js") / "node_modules" / "rsp-js",
    ),
    **{f"faulty-{fault}": _faulty(fault) for fault in ("late", "lossy", "shifted")},
}


def engine_of(name: str, form: str = "json") -> Engine:
    """Return an engine by its name, or one that is a command line."""
    if name in ENGINES:
        return ENGINES[name]
    try:
        command = tuple(shlex.split(name))
    except ValueError as error:
        raise InputError(f"the engine {name!r} is not a command line: {error}") from error
    if not command or (len(command) == 1 and shutil.which(command[0]) is None):
        raise InputError(f"there is no engine {name!r}: use {', '.join(ENGINES)} or a command line")
    return Engine(name, command, form)
