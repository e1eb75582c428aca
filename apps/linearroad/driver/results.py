"""The options and results of a drive, and `summary.json`."""

from __future__ import annotations

import json
import resource
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from linearroad.files import whole
from linearroad.output.sink import TYPES
from linearroad.output.summary import machine

__all__ = ["DriveOptions", "DriveResult", "write_summary"]


@dataclass(frozen=True)
class DriveOptions:
    """How to drive; see `xstream linearroad drive --help`."""

    wire: str = "flat"
    speed: float = 1.0
    minutes: int | None = None
    expressways: float | None = None  # None: those of the input
    answers: str = "write"  # or digest: counted and digested only
    marks: bool | None = None  # None: as the wire has it
    wait_s: float = 0.0  # for the system to listen
    stall_s: float = 60.0  # how long the system may read nothing
    quiet_s: float = 5.0  # the least to wait for the last answers
    reconnect_s: float = 0.0  # how long to try to go on after the connection was cut
    stop_when_late: bool = False  # end the drive at the first answer after its limit


@dataclass
class DriveResult:
    """The figures of a drive, for `summary.json` and for the display while it runs."""

    rows: int = 0
    reports: int = 0
    requests: int = 0
    answers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TYPES, 0))
    rejects: dict[str, int] = field(default_factory=dict)
    #: Answers before their rows were due, to rows that are not known, and frames that are none.
    early_answers: int = 0
    unknown_answers: int = 0
    malformed_answers: int = 0
    wall_seconds: float = 0.0
    #: The last second whose rows have all been sent.
    stream_seconds: int = -1
    interrupted: bool = False
    interrupted_by_user: bool = False
    warnings: list[str] = field(default_factory=list)
    #: Response times by kind, from when a row was due to when its answer had arrived.
    response_s: dict[str, dict[str, float]] = field(default_factory=dict)
    first_late: str | None = None
    longest: str | None = None
    #: How late rows were sent, in stream seconds, and seconds in which the system read nothing.
    lag_s: float = 0.0
    worst_lag_s: float = 0.0
    blocked_s: float = 0.0
    #: The longest that the driver itself took for the rows of a second.
    driver_s: float = 0.0
    #: A sentence about a system, or a driver, that was too slow for the rows; None if none was.
    fell_behind: str | None = None
    #: A sentence about a connection that ended too early or with an error; None if all went well.
    ended: str | None = None
    #: How often the connection was cut and the drive went on, for how long the system was away, and
    #: the answers that came again and were dropped.
    reconnections: int = 0
    away_s: float = 0.0
    repeated_answers: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    #: The number of digests of copies that differ from those of the first copy.
    copies_differ: int = 0
    first_differences: list[str] = field(default_factory=list)
    idle_s: float = 0.0

    @property
    def late(self) -> int:
        """The number of answers that came after their limits."""
        return int(sum(figures["late"] for figures in self.response_s.values()))

    @property
    def passed(self) -> bool:
        """Whether all rows were sent and every answer that came was in time."""
        complete = self.ended is None and not self.interrupted and not self.malformed_answers
        return complete and not self.late and not self.copies_differ

    def interruption(self) -> str:
        """What was sent before an interruption, as a sentence."""
        if self.stream_seconds < 0:
            return "no second was sent completely"
        return f"rows up to stream second {self.stream_seconds:,} were sent"


def write_summary(path: Path, result: DriveResult, options: DriveOptions, files: int) -> None:
    """Write the options and figures of a drive as JSON."""
    hidden = ("idle_s",)
    summary = {
        **{name: getattr(result, name) for name in result.__dataclass_fields__
           if name not in hidden},
        "late": result.late,
        "passed": result.passed,
        "rows_per_second": result.rows / result.wall_seconds if result.wall_seconds else 0.0,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "wire": options.wire,
        **({"rules": "thesis"} if options.wire == "thesis" else {}),
        "speed": options.speed,
        "minutes": options.minutes,
        "from_second": 0,
        "expressways": files if options.expressways is None else options.expressways,
        "answers_are": options.answers,
        "version": metadata.version("xstream"),
        "machine": machine(),
    }  # fmt: skip
    with whole(path) as temporary:  # a drive without a summary has not finished
        temporary.write_text(json.dumps(summary, indent=2) + "\n")
