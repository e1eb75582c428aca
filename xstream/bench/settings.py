"""The options of a benchmark, checked."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from xstream.bench.queries import Engine
from xstream.console import Progress
from xstream.errors import InputError

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a benchmark."""

    scheduler: str = "df"
    memory: str = "refcount-lazy"
    window: int = 4096
    kind: str = "library"
    operators: int = 10
    trials: int = 9
    #: Length of a trial: approximate seconds, or the number of samples.
    seconds: float = 0.1
    samples: int | None = None
    #: Size of the large recording of STATFILTER; 0 omits it.
    megabytes: float = 256.0
    alpha: float = 0.02
    beta: float = 0.001
    input: Path | None = None
    peers: bool = False
    clock: str = "wall"
    #: Updated between trials.
    progress: Progress = field(default_factory=Progress.silent, repr=False, compare=False)

    def __post_init__(self) -> None:
        from xstream.sched import scheduler
        from xstream.sigseg import memory_manager

        if self.scheduler != "all":
            scheduler(self.scheduler)
        memory_manager(self.memory)
        for name in ("window", "operators", "trials", "samples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name} is at least 1, not {value}")
        if self.clock not in ("wall", "processor"):
            raise InputError(f"--clock must be wall or processor, not {self.clock!r}")
        if self.peers and self.clock != "wall":
            raise InputError("--peers requires --clock wall")
        if not self.seconds > 0:
            raise InputError(f"--seconds must be positive, not {self.seconds:g}")
        if not self.megabytes >= 0:
            raise InputError(f"--megabytes must be 0 or more, not {self.megabytes:g}")

    @property
    def engine(self) -> Engine:
        """Return the engine that the benchmark measures."""
        if self.scheduler == "all":
            raise InputError("--scheduler all works with enginebench only: choose one scheduler")
        return Engine(self.scheduler, self.memory, clock=self.clock)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        del values["progress"]
        return {**values, "input": None if self.input is None else str(self.input)}
