"""The tasks of workers: simulate one expressway, and write the stream of one expressway.

Both are plain functions of their arguments and the files below the output directory, so they can
run in this process, in any Spark executor, or twice.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linearroad.files import TRAFFIC_COLUMNS, load_array, save_array, table_writer, whole
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, file_entry, write_receipt
from linearroad.generation.parameters import TrafficParameters
from linearroad.rowforms import nine_fields
from linearroad.schema import THESIS_COLUMNS
from linearroad.storage import make_folder, mapped
from linearroad.traffic._kernels_rows import count_queries, write_rows
from linearroad.traffic.identity import TRIP, Numbering, number_own, vids_of_trips
from linearroad.traffic.simulation import Expressway, Reports, expressway_key, unpack

__all__ = [
    "NumberedExpressway",
    "count_vehicles",
    "simulate_expressway",
    "warm_up",
    "write_traffic",
]

CHUNK_S = 60
ROWS_PER_GROUP = 500_000


def note_progress(path: Path, done: int) -> None:
    """Write the progress of this task, in the unit of its size, for display only."""
    try:
        path.write_text(str(done))
    except PermissionError:  # of an earlier attempt of another user
        path.unlink(missing_ok=True)
        path.write_text(str(done))


def simulate_expressway(root: Path, parameters: TrafficParameters, xway: int) -> Entry:
    """Simulate one expressway: a trace of its reports and a table of its trips."""
    layout = Layout(root)
    make_folder(layout.work)
    expressway = Expressway(parameters.seed, xway, parameters.seconds, traffic=parameters.traffic)
    half = is_half(parameters, xway)
    begin = parameters.begin
    counts: list[NDArray[np.int64]] = []
    reports = queries = 0
    with whole(layout.trace(xway)) as temporary, temporary.open("wb") as trace:
        while expressway.now < parameters.seconds:
            second = expressway.now
            # Stop at the cut: traffic before Time 0 is simulated and dropped.
            until = begin if second < begin else parameters.seconds
            chunk = expressway.advance(min(CHUNK_S, until - second))
            if second >= begin:
                chunk = eastbound(chunk) if half else chunk
                trace.write(chunk.packed.data)
                counts.append(chunk.rows_by_second)
                reports += len(chunk.packed)
                queries += count_queries(
                    expressway.key, chunk.packed, chunk.rows_by_second, np.int64(second)
                )
            note_progress(layout.progress("simulated", xway), expressway.now)
    save_array(layout.rows_by_second(xway), np.concatenate(counts))
    trips = trip_table(expressway, begin)
    if half:
        trips = trips[trips["dir"] == 0]
    save_array(layout.trips(xway), trips)
    entry = {
        "xway": xway,
        "reports": reports,
        "queries": int(queries),
        "trips": len(trips),
        "accidents": [
            each for each in accident_table(expressway, begin) if not half or each["dir"] == 0
        ],
    }
    return write_receipt(layout.receipt("simulated", xway), entry)


def is_half(parameters: TrafficParameters, xway: int) -> bool:
    """Whether only one direction of an expressway is in the stream."""
    return parameters.half and xway == parameters.expressways - 1


def eastbound(chunk: Reports) -> Reports:
    """The reports of Dir 0."""
    kept = unpack(chunk.packed).dir == 0
    second = np.repeat(np.arange(len(chunk.rows_by_second)), chunk.rows_by_second)
    counts = np.bincount(second[kept], minlength=len(chunk.rows_by_second))
    return Reports(np.ascontiguousarray(chunk.packed[kept]), counts.astype(np.int64))


def trip_table(expressway: Expressway, begin: int) -> NDArray[np.void]:
    """The trips with a report at the second `begin` or later."""
    road = expressway.road
    seen = np.flatnonzero(road.last_report >= begin)
    trips = np.zeros(len(seen), TRIP)
    trips["trip"] = seen
    trips["dir"] = road.trip_dir[seen]
    trips["entry"] = road.trip_entry[seen]
    trips["begins"] = road.first_report[seen] >= begin
    trips["ends"] = road.left_at[seen] >= 0
    # Reports are 30 s apart, which determines the first one after the cut.
    first = road.first_report[seen].astype(np.int64)
    late = np.maximum(begin - first, 0)
    trips["first"] = first + -(-late // 30) * 30 - begin
    trips["last"] = road.last_report[seen] - begin
    return trips


def accident_table(expressway: Expressway, begin: int) -> list[Entry]:
    """When and where vehicles crashed, in the stream's Time."""
    from linearroad.traffic import _kernels_cars as k

    table = []
    for row in expressway.road.accidents:
        if row[k.ACCIDENT_STATE] < k.STANDING:
            continue
        direction = int(row[k.ACCIDENT_DIR])
        along = int(row[k.ACCIDENT_X])
        table.append(
            {
                "dir": direction,
                "lane": int(row[k.ACCIDENT_LANE]),
                "pos": along if direction == 0 else k.ROAD_FT - 1 - along,
                "stopped": int(row[k.ACCIDENT_STOPPED]) - begin,
                "detected": int(row[k.ACCIDENT_DETECTED]) - begin,
                "cleared": int(row[k.ACCIDENT_CLEARED]) - begin,
            }
        )
    return table


def numbering(root: Path, parameters: TrafficParameters, xway: int) -> Numbering:
    """Number the vehicles of one expressway, from its trips and those of the one before it."""
    layout = Layout(root)
    before = parameters.before(xway)
    return number_own(
        parameters.seed,
        xway,
        before,
        parameters.two_expressways_share,
        load_array(layout.trips(before)),
        load_array(layout.trips(xway)),
    )


def count_vehicles(root: Path, parameters: TrafficParameters, xway: int) -> int:
    """The number of VIDs of an expressway: the vehicles whose first trip is on it."""
    return numbering(root, parameters, xway).vehicles


@dataclass(frozen=True)
class NumberedExpressway:
    """An expressway and its first VID and QID."""

    xway: int
    first_vid: int
    before_first_vid: int
    first_qid: int


def vids(root: Path, parameters: TrafficParameters, place: NumberedExpressway) -> NDArray[np.int32]:
    """The VID of each trip in the table of trips."""
    before = parameters.before(place.xway)
    return vids_of_trips(
        numbering(root, parameters, place.xway),
        place.first_vid,
        numbering(root, parameters, before),
        place.before_first_vid,
    )


def write_traffic(root: Path, parameters: TrafficParameters, place: NumberedExpressway) -> Entry:
    """Write the stream of one expressway from its trace."""
    layout = Layout(root)
    xway = place.xway
    path = layout.traffic(xway, parameters.format)
    own = vids(root, parameters, place)
    trips = load_array(layout.trips(xway))
    vid_by_trip = np.full(int(trips["trip"].max(initial=0)) + 1, -1, np.int32)
    vid_by_trip[trips["trip"]] = own
    seconds = load_array(layout.rows_by_second(xway))
    key = expressway_key(parameters.seed, xway)
    rows, qid = 0, place.first_qid
    ring = np.array(parameters.ring(xway), np.int64)
    trace = mapped(layout.trace(xway), np.int32).reshape(-1, 2)
    columns = THESIS_COLUMNS if parameters.traffic == "thesis" else TRAFFIC_COLUMNS
    with table_writer(path, columns, parameters.format) as writer:
        for begin, end, first, last in row_groups(seconds):
            packed = np.array(trace[first:last])
            # At most one query per report.
            out = np.empty((len(TRAFFIC_COLUMNS), 2 * len(packed)), np.int32)
            n, qid = write_rows(
                out,
                packed,
                seconds[begin:end],
                vid_by_trip,
                key,
                np.int64(parameters.begin + begin),
                np.int64(parameters.begin),
                np.int64(xway),
                ring,
                np.int64(qid),
            )
            made = out[:, :n]
            writer.write(nine_fields(made) if parameters.traffic == "thesis" else made)
            rows += n
            note_progress(layout.progress("traffic", xway), rows)
    everyone = np.unique(own)
    save_array(layout.vids(xway), everyone)
    entry = file_entry(root, path) | {
        "xway": xway,
        "rows": rows,
        "vehicles": len(everyone),
        "first_vid": place.first_vid,
    }
    return write_receipt(layout.receipt("traffic", xway), entry)


def warm_up() -> None:
    """Compile the kernels once, into the cache, before many workers each compile them."""
    expressway = Expressway(seed=0, xway=0, seconds=2)
    chunk = expressway.advance(2)
    zero = np.int64(0)
    count_queries(expressway.key, chunk.packed, chunk.rows_by_second, zero)
    out = np.empty((len(TRAFFIC_COLUMNS), 2 * len(chunk.packed)), np.int32)
    vid_by_trip = np.zeros(100, np.int32)
    write_rows(
        out, chunk.packed, chunk.rows_by_second, vid_by_trip, expressway.key,
        zero, zero, zero, np.array([0, 1], np.int64), zero,
    )  # fmt: skip
    number_own(0, 0, 0, 0.0, np.zeros(1, TRIP), np.zeros(1, TRIP))


def row_groups(seconds: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
    """Seconds [begin, end) and their rows [first, last), about ROWS_PER_GROUP at a time."""
    rows = np.concatenate(([0], np.cumsum(seconds)))
    group = (rows[1:] - 1) // ROWS_PER_GROUP
    edges = [0, *(np.flatnonzero(np.diff(group) > 0) + 1).tolist(), len(seconds)]
    return [
        (begin, end, int(rows[begin]), int(rows[end])) for begin, end in itertools.pairwise(edges)
    ]
