"""Systems that run on Java: their programs are compiled once and kept in the user's cache.

The sources beside this file are shared by all of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["become_java"]

HERE = Path(__file__).parent
HEAP = "-Xmx12g"


def become_java(
    sources: Path, jars: Path, program: str, options: list[str], arguments: list[str]
) -> None:
    """Compile the sources of a folder, and replace this process by a program among them."""
    java, javac = (shutil.which(name) for name in ("java", "javac"))
    if java is None or javac is None:
        sys.exit("a JDK is needed: java and javac are not both installed")
    classes = _compiled(
        javac, [*sorted(HERE.glob("*.java")), *sorted(sources.glob("*.java"))], jars
    )
    path = f"{classes}{os.pathsep}{jars}/*"
    os.execv(java, [java, *options, HEAP, "-cp", path, program, *arguments])


def _compiled(javac: str, files: list[Path], jars: Path) -> Path:
    """The folder of the compiled classes, named by what they are made of."""
    digest = hashlib.sha256(str(jars).encode())
    for file in files:
        digest.update(file.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    classes = cache / "xstream" / "java" / digest.hexdigest()[:16]
    if not classes.exists():
        classes.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=classes.parent))
        command = [javac, "-nowarn", "-Xlint:none", "-d", str(made), "-cp", f"{jars}/*"]
        subprocess.run([*command, *map(str, files)], check=True, stdout=sys.stderr)
        try:
            made.rename(classes)
        except OSError:  # another process was faster
            shutil.rmtree(made, ignore_errors=True)
    return classes
