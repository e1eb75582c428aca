"""The figures of docs/linear-road-rules.md, section 6, measured in a generated directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.description import _kernels as k
from linearroad.files import TRAFFIC_COLUMNS, checksum, int32_schema
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, check_sizes, read_json
from linearroad.rowforms import papers_reports
from linearroad.schema import THESIS_COLUMNS
from xstream.errors import InputError

__all__ = ["Figures", "check_files", "measure_expressway", "read_blocks"]

SURVEYED = ("type", "time", "vid", "spd", "lane", "dir", "seg", "pos")


@dataclass(frozen=True)
class Figures:
    """The figures of one expressway's stream."""

    xway: int
    seconds: int
    from_minute: int  # of the simulated traffic; the stream's Time begins at 0
    reports: int
    vehicles: int
    notifications: int
    tolls_above_zero: int
    alerts: int
    queries: dict[str, int]
    first_minute_rate: float
    last_minute_rate: float
    on_road_at_end: int
    lane_speeds_mph: list[float]
    busiest_segment_vehicles: int
    rate: NDArray[np.int64]
    cell_speed: NDArray[np.float32]

    def as_dict(self) -> dict[str, Any]:
        """All fields except for the arrays, for --json."""
        arrays = ("rate", "cell_speed")
        return {name: value for name, value in vars(self).items() if name not in arrays}


def read_blocks(path: Path, columns: tuple[str, ...]) -> Iterator[list[NDArray[np.int32]]]:
    """The wanted columns of a stream, a block of rows at a time."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=list(columns))
                yield [table[name].to_numpy() for name in columns]
        return
    schema = int32_schema(THESIS_COLUMNS if columns == THESIS_COLUMNS else TRAFFIC_COLUMNS)
    reader = pacsv.open_csv(
        path,
        read_options=pacsv.ReadOptions(column_names=schema.names, block_size=1 << 24),
        convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(schema.names, pa.int32())),
    )
    with reader:
        for batch in reader:
            yield [batch.column(name).to_numpy() for name in columns]


def empty_survey(seconds: int, vehicles: int) -> k.Survey:
    """State for a stream of `seconds` seconds with VIDs below `vehicles`."""
    by_minute = (seconds // 60 + 3, k.DIRECTIONS, k.SEGMENTS)
    cells = (2, seconds // k.CELL_S + 1, k.ROAD_FT // k.CELL_FT)
    places = (k.DIRECTIONS, 3, k.ROAD_FT)
    return k.Survey(
        last_time=np.full(vehicles, -(10**6), np.int32),
        last_seg=np.full(vehicles, -1, np.int32),
        last_place=np.full(vehicles, -1, np.int32),
        last_spd=np.zeros(vehicles, np.int32),
        equal_reports=np.zeros(vehicles, np.int32),
        speed_twice=np.zeros(by_minute, np.int64),
        vehicles=np.zeros(by_minute, np.int64),
        accident=np.zeros(by_minute, np.int8),
        lav=np.full((k.DIRECTIONS, k.SEGMENTS), -1, np.int64),
        stop_time=np.zeros(places, np.int32),
        stop_vid=np.full(places, -1, np.int32),
        rate=np.zeros(seconds, np.int64),
        queries=np.zeros(5, np.int64),
        cell_speed=np.zeros(cells, np.int32),
        cell_reports=np.zeros(cells, np.int32),
        lane_speed=np.zeros(k.LANES, np.int64),
        lane_reports=np.zeros(k.LANES, np.int64),
        tally=np.zeros(k.TALLIES, np.int64),
    )


def _check_block(block: list[NDArray[np.int32]], seconds: int, vehicles: int) -> None:
    """Refuse rows whose indices are outside of the survey's arrays."""
    below = (5, seconds, vehicles, None, k.LANES, k.DIRECTIONS, k.SEGMENTS, k.ROAD_FT)
    reports = block[0] == 0
    for name, column, end in zip(SURVEYED, block, below, strict=True):
        values = column if name in ("type", "time") else column[reports]
        if end is not None and len(values) and not 0 <= values.min() <= values.max() < end:
            raise ValueError(f"{name} is not 0 to {end - 1:,} in all rows")


def measure_expressway(root: Path, manifest: Entry, xway: int) -> Figures:
    """Read one expressway's stream and count what a Linear Road system would answer."""
    parameters = manifest["parameters"]
    last = parameters["expressways"] - 1
    if not 0 <= xway <= last:
        known = f"expressways 0 to {last}" if last else "expressway 0"
        raise InputError(f"{root} has {known}, not {xway}: choose another --xway")
    path = Layout(root).traffic(xway, parameters["format"])
    for needed in (path, Layout(root).vids(xway)):
        if not needed.is_file():
            raise InputError(f"{needed} is missing: run `linearroad generate` again to finish")
    check_sizes(root, [entry for entry in manifest.get("traffic", []) if entry["xway"] == xway])
    seconds = 60 * parameters["minutes"]
    try:
        vids = np.load(Layout(root).vids(xway), allow_pickle=False)
        survey = empty_survey(seconds, int(vids[-1]) + 1)
        thesis = parameters.get("traffic") == "thesis"
        for columns in read_blocks(path, THESIS_COLUMNS if thesis else SURVEYED):
            if thesis:
                reports = papers_reports(np.stack(columns))
                columns = [reports[TRAFFIC_COLUMNS.index(name)] for name in SURVEYED]
            block = [np.require(column, np.int32, ["C", "W"]) for column in columns]
            _check_block(block, seconds, len(survey.last_time))
            k.survey_rows(survey, *block)
    except (OSError, ValueError, IndexError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} cannot be read: {reason}; generate it again") from error
    with np.errstate(invalid="ignore"):
        cell_speed = np.where(
            survey.cell_reports > 0, survey.cell_speed / survey.cell_reports, np.nan
        )
        lane_speeds = np.round(survey.lane_speed / np.maximum(survey.lane_reports, 1), 1)
    return Figures(
        xway=xway,
        seconds=seconds,
        from_minute=int(parameters.get("from_minute", 0)),
        reports=int(survey.tally[k.REPORTS]),
        vehicles=len(vids),
        notifications=int(survey.tally[k.NOTIFICATIONS]),
        tolls_above_zero=int(survey.tally[k.PAID]),
        alerts=int(survey.tally[k.ALERTS]),
        queries=dict(
            zip(("balance", "expenditure", "travel time"), survey.queries[2:].tolist(), strict=True)
        ),
        first_minute_rate=float(np.mean(survey.rate[:60])),
        last_minute_rate=float(np.mean(survey.rate[-60:])),
        on_road_at_end=int(survey.rate[-30:].sum()),
        lane_speeds_mph=lane_speeds.tolist(),
        busiest_segment_vehicles=int(survey.vehicles.max()),
        rate=survey.rate,
        cell_speed=cell_speed.astype(np.float32),
    )


def check_files(root: Path, manifest: Entry) -> int:
    """Compare every file with its checksum in the manifest; returns the number of files."""
    entries = [*manifest.get("traffic", [])]
    entries += [file for entry in manifest.get("store", []) for file in entry["files"]]
    for listed in manifest.get("history", []):
        days = read_json(root / listed["file"])["days"] if "file" in listed else [listed]
        entries += [file for entry in days for file in entry["files"]]
    for entry in entries:
        path = root / entry["file"]
        if not path.is_file() or checksum(path) != entry["sha256"]:
            raise InputError(f"{path} is missing or differs from the manifest: generate it again")
    return len(entries)
