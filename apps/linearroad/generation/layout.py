"""The paths of all files in a generated directory.

manifest.json                              parameters, counts and checksums
traffic/xway-00000.parquet (or .csv)       the stream of one expressway, ordered by time
merged.csv                                 all of them merged by time (only with --merged)
trips/xway-00000.npy                       one record per trip (traffic.identity.TRIP)
trips/vids-00000.npy                       the VIDs seen on it, ascending, int32
history/segments/xway=0/day-01.parquet     SegmentHistory
history/tolls/xway=0/day-01.parquet        TollHistory
history/days/xway-00000.json               the files of its days and their checksums
history/flat/                              the same as flat files (only with --format csv)
history/store/xway-00000/*.npy             the compact store, see linearroad.history.store
.work/                                     traces and receipts of a run that is not complete
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """Paths below one generated directory.

    >>> Layout(Path("out")).traffic(3, "csv").as_posix()
    'out/traffic/xway-00003.csv'
    """

    root: Path

    @property
    def manifest(self) -> Path:
        """The manifest."""
        return self.root / "manifest.json"

    @property
    def merged(self) -> Path:
        """All expressways in one flat file."""
        return self.root / "merged.csv"

    @property
    def work(self) -> Path:
        """The folder for files of an unfinished run."""
        return self.root / ".work"

    def traffic(self, xway: int, form: str) -> Path:
        """The stream of one expressway."""
        return self.root / "traffic" / f"xway-{xway:05d}.{form}"

    def trips(self, xway: int) -> Path:
        """The trips of one expressway."""
        return self.root / "trips" / f"xway-{xway:05d}.npy"

    def vids(self, xway: int) -> Path:
        """All VIDs seen on one expressway, ascending."""
        return self.root / "trips" / f"vids-{xway:05d}.npy"

    def trace(self, xway: int) -> Path:
        """The packed reports of one expressway, until its stream is written."""
        return self.work / f"trace-{xway:05d}.i32"

    def rows_by_second(self, xway: int) -> Path:
        """The number of rows of the trace in each second."""
        return self.work / f"seconds-{xway:05d}.npy"

    def receipt(self, kind: str, *numbers: int) -> Path:
        """The record of a finished task."""
        return self.work / f"{kind}-{'-'.join(f'{number:05d}' for number in numbers)}.json"

    def progress(self, kind: str, *numbers: int) -> Path:
        """The progress of a running task: a number of seconds or rows, as text."""
        return self.receipt(kind, *numbers).with_suffix(".done")

    def history(self, table: str, xway: int, day: int) -> Path:
        """One day of `segments` or `tolls`."""
        return self.root / "history" / table / f"xway={xway}" / f"day-{day:02d}.parquet"

    def flat_history(self, table: str, xway: int, day: int) -> Path:
        """The same as a flat file."""
        return self.root / "history" / "flat" / table / f"xway-{xway:05d}-day-{day:02d}.csv"

    def history_days(self, xway: int) -> Path:
        """The list of an expressway's days of history: their files and checksums."""
        return self.root / "history" / "days" / f"xway-{xway:05d}.json"

    def store(self, xway: int) -> Path:
        """The folder of the compact store of one expressway."""
        return self.root / "history" / "store" / f"xway-{xway:05d}"
