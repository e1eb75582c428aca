"""The traffic of a probe: minutes of generated expressways, as many as an L needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from linearroad.files import whole
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, read_manifest, write_json
from xstream.errors import InputError

__all__ = ["Cut", "Cuts"]

REPORTS = 0
EASTBOUND = 0


@dataclass(frozen=True)
class Cut:
    """A directory like a generated one, without history."""

    path: Path
    #: The L that it has, and its expressways; of half an L, the last has one direction only.
    rated: float
    expressways: int
    #: How often the driver sends it.
    copies: int
    rows: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name


class Cuts:
    """Makes cuts of a base and keeps them in a folder."""

    def __init__(self, base: Path, folder: Path, minutes: int, from_minute: int | None) -> None:
        self.base, self._folder, self.minutes = base, folder, minutes
        self.manifest = read_manifest(base)
        parameters = self.manifest["parameters"]
        if parameters["format"] != "parquet" or parameters.get("half"):
            raise InputError(f"{base} must have whole expressways in Parquet files")
        if not self.manifest.get("store"):
            raise InputError(f"{base} has no history: generate it with --history")
        length = int(parameters["minutes"])
        if minutes > length:
            raise InputError(f"{base} has {length} minutes, so --minutes cannot be {minutes}")
        self.from_minute = length - minutes if from_minute is None else from_minute
        if self.from_minute + minutes > length:
            raise InputError(
                f"{base} ends at minute {length}, before {minutes} minutes from minute "
                f"{self.from_minute}"
            )

    @property
    def expressways(self) -> int:
        """The expressways of the base."""
        return int(self.manifest["parameters"]["expressways"])

    @property
    def vehicles(self) -> int:
        """The vehicles of the base."""
        return int(self.manifest["totals"]["vehicles"])

    def rounded(self, rated: float) -> float:
        """The largest L that can be made of the base and is at most a number.

        Up to the expressways of the base, L is any multiple of a half; above, the first ones are
        copied, all equally often.
        """
        return math.prod(self._parts(rated))

    def _parts(self, rated: float) -> tuple[float, int]:
        """The L of each copy, and the number of copies, that come nearest to an L from below."""
        if rated < self.expressways:
            return max(math.floor(2 * rated) / 2, 0.5), 1
        fewest = math.ceil(rated / self.expressways)
        # With up to twice as many copies, each has at least half of the base.
        numbers = range(int(rated // self.expressways), 2 * fewest)
        found = [(min(int(rated // n), self.expressways), n) for n in numbers]
        most, copies = max(found, key=lambda parts: (math.prod(parts), parts[0]))
        return float(most), copies

    def of(self, rated: float) -> Cut:
        """The cut for an L."""
        rated, copies = self._parts(rated)
        name = f"cut-{rated:g}-from-{self.from_minute}-minutes-{self.minutes}"
        path, expressways = self._folder / name, math.ceil(rated)
        try:
            rows = int(read_manifest(path)["totals"]["rows"])
        except InputError:
            rows = self._make(path, rated, expressways)
        return Cut(path, rated, expressways, copies, rows)

    def _make(self, path: Path, rated: float, expressways: int) -> int:
        layout, made = Layout(path), list[Entry]()
        layout.traffic(0, "parquet").parent.mkdir(parents=True, exist_ok=True)
        for xway in range(expressways):
            rows = self._rows(xway)
            if xway + 1 > rated:
                rows = eastbound(rows)
            target = layout.traffic(xway, "parquet")
            with whole(target) as temporary:
                pq.write_table(rows, temporary, compression="zstd", write_page_checksum=True)
            made.append({
                "file": target.relative_to(path).as_posix(), "bytes": target.stat().st_size,
                "rows": rows.num_rows, "xway": xway,
            })  # fmt: skip
        count = sum(int(entry["rows"]) for entry in made)
        write_json(layout.manifest, {
            **{name: self.manifest[name] for name in ("version", "complete")},
            "parameters": {"format": "parquet", "expressways": expressways,
                           "minutes": self.minutes, "half": rated < expressways},
            "totals": {**self.manifest["totals"], "rows": count},
            "traffic": made,
        })  # fmt: skip
        return count

    def _rows(self, xway: int) -> pa.Table:
        """The rows of an expressway in these minutes, with Times from 0 on."""
        begin, end = 60 * self.from_minute, 60 * (self.from_minute + self.minutes)
        path = Layout(self.base).traffic(xway, "parquet")
        try:
            rows = pq.read_table(
                path, filters=[("time", ">=", begin), ("time", "<", end)],
                page_checksum_verification=True,
            )  # fmt: skip
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        place = rows.schema.get_field_index("time")
        shifted = pc.subtract(rows["time"], pa.scalar(begin, pa.int32()))
        return rows.set_column(place, rows.schema.field("time"), shifted)


def eastbound(rows: pa.Table) -> pa.Table:
    """The reports of one direction, and the requests of the vehicles that have them."""
    is_report = pc.equal(rows["type"], REPORTS)
    kept = pc.and_(is_report, pc.equal(rows["dir"], EASTBOUND))
    vehicles = pc.unique(rows["vid"].filter(kept))
    asked = pc.and_(pc.invert(is_report), pc.is_in(rows["vid"], vehicles))
    return rows.filter(pc.or_(kept, asked))
