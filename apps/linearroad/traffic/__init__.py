"""Microscopic traffic: demand, simulation, identities, rows."""

from __future__ import annotations

from pathlib import Path

__all__ = ["forget_stale_kernels"]


def forget_stale_kernels(folder: Path) -> None:
    """Remove numba's cached code that is older than any kernel file of a folder.

    The cache looks at the file of the compiled function only, and would keep what another of these
    files has changed since.
    """
    cached = list((folder / "__pycache__").glob("_kernels*.nbi"))
    newest = max(path.stat().st_mtime for path in folder.glob("_kernels*.py"))
    for index in cached:
        try:
            if index.stat().st_mtime < newest:
                index.unlink()
        except OSError:
            # Another process was faster, or the installation is read-only.
            continue


forget_stale_kernels(Path(__file__).parent)
