"""Compiles the query against the jars of pyspark and becomes it.

python -m linearroad.peers.spark.launcher TASK...
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from linearroad.peers.java import become_java
from linearroad.peers.system import all_of, needs_package, needs_program

#: Packages of Java that Spark looks into, as in its own start scripts.
OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref",
    "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar",
)  # fmt: skip

spark_missing = all_of(
    needs_package("pyspark", "pip install 'xstream[spark]'"),
    needs_program("javac", "apt-get install openjdk-17-jdk-headless"),
)


def main() -> None:
    """Run the query of a task."""
    found = find_spec("pyspark")
    if found is None or found.submodule_search_locations is None:
        sys.exit(spark_missing())
    jars = Path(found.submodule_search_locations[0]) / "jars"
    options = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    options.append("-Djdk.reflect.useDirectMethodHandle=false")
    become_java(Path(__file__).parent, jars, "linearroad.spark.LinearRoad", options, sys.argv[1:])


if __name__ == "__main__":
    main()
