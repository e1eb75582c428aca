"""What the driver and the executors of a cluster must have in common: versions and code.

`found` runs on executors before anything else and is sent by value, so that it can tell that they
lack this package. It must therefore use nothing but the standard library, imported where it is
used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["PACKAGES", "difference", "found", "own"]

#: Packages whose versions decide what is computed, how it is stored, or how it is sent.
PACKAGES = ("xstream", "numpy", "numba", "pyarrow", "pandas", "pyspark")


def found(_: Any = None, packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """The versions here, by name; "none" for what is not installed. Sent by value."""
    import hashlib
    import platform
    import sys
    from importlib import metadata, util
    from pathlib import Path

    versions = {"host": platform.node(), "Python": ".".join(map(str, sys.version_info[:2]))}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    code = hashlib.sha256()
    for name in ("xstream", "linearroad"):
        spec = util.find_spec(name)
        if spec is None or spec.origin is None:
            versions["xstream"] = "none"
            continue
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    versions["code"] = code.hexdigest()[:12]
    return versions


@cache
def own() -> dict[str, str]:
    """The versions of this process."""
    return found()


def difference(driver: dict[str, str], executor: dict[str, str]) -> str | None:
    """What an executor has in another version than the driver, as a sentence."""
    for name in ("Python", *PACKAGES, "code"):
        here, there = driver[name], executor[name]
        if here == there:
            continue
        what = (
            "another state of the source code of xstream" if name == "code" else f"{name} {there}"
        )
        if there == "none":
            what = f"no {name}"
        needed = "that of the driver" if name == "code" else here
        return (
            f"executors on {executor['host']} have {what}, not {needed}: ship the environment of "
            "the driver (docs/cluster.md), or install the same one"
        )
    return None
