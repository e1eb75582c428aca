"""Flink SQL: compiles FlinkAdapter.java against Flink's own jars, and becomes it.

Arguments: the folder that Flink is installed in, and the task. The query sees the view `windowed`:
the items with `window_start` and `window_end`, once for each window that they are in.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("FlinkAdapter.java")
#: Flink's serializers look into these packages.
OPENED = ("java.util", "java.lang")


def main() -> None:
    """Compile the adapter if it has changed, and run it."""
    folder = Path(sys.argv[1])
    policy = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["policy"]
    if policy not in ("window-close", "non-empty"):
        sys.exit(f"Flink reports when a window closes; it has no policy {policy}")
    classes, jars = folder / "classes", f"{folder / 'pyflink' / 'lib'}/*"
    java, javac = (shutil.which(name) for name in ("java", "javac"))
    if java is None or javac is None:
        sys.exit("Flink needs a JDK: java and javac are not both installed")
    made = classes / "FlinkAdapter.class"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        command = [javac, "-nowarn", "-d", str(classes), "-cp", jars, str(SOURCE)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    path = f"{classes}{os.pathsep}{jars}"
    os.execv(java, [java, *opened, "-Xmx1g", "-cp", path, "FlinkAdapter", sys.argv[2]])


main()
