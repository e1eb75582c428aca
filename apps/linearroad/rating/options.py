"""The options of a rating, and what a rating must have been begun with to be resumed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["RatingOptions"]


@dataclass(frozen=True)
class RatingOptions:
    """The options of a rating; see `xstream linearroad rate --help`."""

    base: Path
    out: Path
    first: float | None = None
    last: float | None = None
    speed: float = 10.0
    threads: int = 2
    quick: bool = False
    validated: Path | None = None  # OUT/originals if not given
    master: str | None = None  # of a Spark cluster; None: this machine
    resume: bool = False
    strict: bool = False  # no copies; see `linearroad.rating.strict`
    expressways: float | None = None  # of a strict rating: those to generate

    @property
    def originals(self) -> Path:
        """The folder of the validated answers."""
        return self.validated or self.out / "originals"

    @property
    def identity(self) -> dict[str, Any]:
        """Options that decide the result of a step, by name."""
        return {
            "--speed": self.speed, "--threads": self.threads, "--master": self.master,
        }  # fmt: skip
