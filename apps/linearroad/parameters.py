"""What one generated directory is made from; two runs with equal parameters make equal bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from xstream.errors import InputError

__all__ = ["TrafficParameters"]

FORMATS = ("parquet", "csv")


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

    def __post_init__(self) -> None:
        if not 1 <= self.expressways <= 100_000:
            raise InputError(f"--expressways is 1 to 100000, not {self.expressways}")
        if self.minutes < 1:
            raise InputError(f"--minutes is 1 or more, not {self.minutes}")
        if self.from_minute < 0:
            raise InputError(f"--from-minute is 0 or more, not {self.from_minute}")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"--seed is 0 to 2**63 - 1, not {self.seed}")
        if not 0.0 <= self.two_expressways_share <= 0.2:
            raise InputError(
                f"--two-expressways is a share from 0 to 0.2, not {self.two_expressways_share}"
            )
        if self.format not in FORMATS:
            raise InputError(f"--format is parquet or csv, not {self.format}")

    @property
    def begin(self) -> int:
        """The simulated second that becomes Time 0."""
        return 60 * self.from_minute

    @property
    def seconds(self) -> int:
        """Seconds to simulate, those before the beginning included."""
        return 60 * (self.from_minute + self.minutes)

    def as_dict(self) -> dict[str, int | float | str]:
        """For the manifest."""
        return asdict(self)
