"""The parameters of a generated directory; equal parameters give equal bytes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from linearroad.traffic.demand import TRIPS_PER_SECOND_LAST
from xstream.errors import InputError

__all__ = ["TrafficParameters"]

FORMATS = ("parquet", "csv")
TRAFFICS = ("paper", "thesis")
MOST_EXPRESSWAYS = 100_000
#: A week. The benchmark lasts three hours; the traffic after them is light.
MOST_MINUTES = 7 * 24 * 60
VIDS = 2**31


@dataclass(frozen=True)
class TrafficParameters:
    """The parameters of the traffic of some expressways.

    >>> TrafficParameters(expressways=1, minutes=3, seed=7).seconds
    180
    """

    expressways: int
    minutes: int
    seed: int
    from_minute: int = 0
    two_expressways_share: float = 0.02
    format: str = "parquet"
    #: Only one direction (Dir 0) of the last expressway: L is half less than the expressways.
    half: bool = False
    #: The paper's traffic, or the thesis': its accidents and its nine fields.
    traffic: str = "paper"
    #: Vehicles and requests stay within this many neighbouring expressways; 0: within all.
    group: int = 0

    @classmethod
    def of_l(cls, expressways: float, **others: Any) -> TrafficParameters:
        """The parameters for an L that may end in a half.

        >>> made = TrafficParameters.of_l(1.5, minutes=3, seed=7)
        >>> made.expressways, made.half
        (2, True)
        """
        if not 0.5 <= expressways <= MOST_EXPRESSWAYS or 2 * expressways % 1:
            raise InputError(
                f"--expressways must be from 0.5 to {MOST_EXPRESSWAYS} in steps of 0.5, "
                f"not {expressways:g}"
            )
        return cls(expressways=math.ceil(expressways), half=expressways % 1 != 0, **others)

    def __post_init__(self) -> None:
        if self.traffic not in TRAFFICS:
            raise InputError(f"--traffic must be paper or thesis, not {self.traffic!r}")
        if not 1 <= self.expressways <= MOST_EXPRESSWAYS:
            raise InputError(
                f"--expressways must be from 1 to {MOST_EXPRESSWAYS}, not {self.expressways}"
            )
        if not 1 <= self.minutes <= MOST_MINUTES:
            raise InputError(f"--minutes must be from 1 to {MOST_MINUTES}, not {self.minutes}")
        if not 0 <= self.from_minute <= MOST_MINUTES - self.minutes:
            raise InputError(
                f"--from-minute must be from 0 to {MOST_MINUTES} less --minutes, not "
                f"{self.from_minute}"
            )
        if not 0 <= self.seed < 2**63:
            raise InputError(f"--seed must be from 0 to 2**63 - 1, not {self.seed}")
        if not 0.0 <= self.two_expressways_share <= 0.2:
            raise InputError(
                f"--two-expressways must be a share from 0 to 0.2, not {self.two_expressways_share}"
            )
        if not 0 <= self.group <= self.expressways:
            raise InputError(f"--group must be from 0 to {self.expressways}, not {self.group}")
        if self.format not in FORMATS:
            raise InputError(f"--format must be parquet or csv, not {self.format}")
        trips = int(TRIPS_PER_SECOND_LAST * self.seconds * self.expressways)
        if trips > VIDS:
            raise InputError(
                f"{self.expressways} expressways make about {trips:,} trips in "
                f"{self.from_minute + self.minutes} minutes, and there are {VIDS:,} VIDs: "
                "generate fewer expressways or minutes"
            )

    def ring(self, xway: int) -> tuple[int, int]:
        """The expressways that an expressway shares vehicles with: the first and their number.

        >>> TrafficParameters(expressways=8, minutes=1, seed=0, group=3).ring(7)
        (6, 2)
        """
        if not self.group:
            return 0, self.expressways
        first = xway - xway % self.group
        return first, min(self.group, self.expressways - first)

    def before(self, xway: int) -> int:
        """The expressway that vehicles come from; the last one's continue on the first."""
        first, count = self.ring(xway)
        return first + (xway - first - 1) % count

    @property
    def begin(self) -> int:
        """The simulated second that becomes Time 0."""
        return 60 * self.from_minute

    @property
    def seconds(self) -> int:
        """Seconds to simulate, including those before the start of the stream."""
        return 60 * (self.from_minute + self.minutes)

    def as_dict(self) -> dict[str, int | float | str]:
        """For the manifest; what is new and has its usual value is left out."""
        usual = {"half": False, "traffic": "paper", "group": 0}
        return {name: value for name, value in asdict(self).items() if usual.get(name) != value}
