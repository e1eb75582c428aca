"""The experiments of the paper as test files."""

from __future__ import annotations

from pathlib import Path

from xstream import InputError

__all__ = ["test_file"]

_HERE = Path(__file__).parent


def test_file(path: Path) -> Path:
    """Return a test file; e1 to e4 are those of the paper's experiments."""
    if path.exists():
        return path
    if str(path) not in ("e1", "e2", "e3", "e4"):
        raise InputError(f"there is no test file {path}: name a TOML file, or e1, e2, e3 or e4")
    return _HERE / f"{path}.toml"


test_file.__test__ = False  # type: ignore[attr-defined]
