"""Compiles the job against Flink's own jars and becomes it.

python -m linearroad.peers.flink.launcher TASK...
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from linearroad.peers.java import become_java
from linearroad.peers.system import all_of, needs_package, needs_program

#: Flink's serializers look into these packages.
OPENED = ("java.util", "java.lang")

flink_missing = all_of(
    needs_package("pyflink", "pip install --no-deps apache-flink-libraries"),
    needs_program("javac", "apt-get install openjdk-17-jdk-headless"),
)


def main() -> None:
    """Run the job of a task."""
    found = find_spec("pyflink")
    if found is None or found.submodule_search_locations is None:
        sys.exit(flink_missing())
    jars = Path(found.submodule_search_locations[0]) / "lib"
    options = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    become_java(Path(__file__).parent, jars, "linearroad.flink.LinearRoad", options, sys.argv[1:])


if __name__ == "__main__":
    main()
