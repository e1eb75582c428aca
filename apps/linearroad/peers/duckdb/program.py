"""Linear Road on DuckDB: the rows of a second become a table, and SQL answers them.

python -m linearroad.peers.duckdb.program TASK...
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from linearroad.generation.layout import Layout
from linearroad.history.store import TOLL_VIDS, TOLLS
from linearroad.peers.crossings import Journeys
from linearroad.peers.system import Task
from linearroad.peers.tables import ANSWER, EXPENDITURE, second_tables, travel_times

HERE = Path(__file__).parent


class LinearRoad:
    """The tables of a run and the statements of a second."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._database = duckdb.connect(":memory:")
        self._database.execute((HERE / "schema.sql").read_text(encoding="utf-8"))
        self._second = (HERE / "second.sql").read_text(encoding="utf-8")
        self._minute = (HERE / "minute.sql").read_text(encoding="utf-8")
        self._journeys = Journeys(task.history, task.base_expressways)
        self._now = 0
        self._load_tolls()

    def _load_tolls(self) -> None:
        """TollHistory, in the order of expressway and vehicle: lookups read one row group."""
        for xway in range(self._task.base_expressways):
            store = Layout(self._task.history).store(xway)
            vids, tolls = np.load(store / TOLL_VIDS), np.load(store / TOLLS)
            days = pa.FixedSizeListArray.from_arrays(pa.array(tolls.reshape(-1)), tolls.shape[1])
            loaded = pa.table({"vid": vids, "toll": days})
            self._database.register("loaded", loaded)
            self._database.execute(f"INSERT INTO tolls SELECT {xway}, vid, toll FROM loaded")
            self._database.unregister("loaded")

    def answer(self, second: int, rows: pa.Table) -> list[pa.Table]:
        """The answers to the rows of a second."""
        if second // 60 > self._now:
            self._run(self._minute, minute=self._now, now=second // 60)
            self._now = second // 60
        self._database.register("rows", rows)
        self._run(self._second, t=second)
        found = [self._database.execute("FROM answers").to_arrow_table()]
        self._database.unregister("rows")
        kinds = rows["type"].to_numpy()
        return [
            *found,
            *self._expenditures(rows, kinds),
            *travel_times(rows, kinds, self._journeys),
        ]

    def _run(self, statements: str, **numbers: int) -> None:
        self._database.execute(statements.format(**numbers))

    def _expenditures(self, rows: pa.Table, kinds: Any) -> list[pa.Table]:
        asked = rows.filter(pa.array(kinds == EXPENDITURE)).select(
            ["time", "vid", "xway", "qid", "day"]
        )
        found = []
        for time, vid, xway, qid, day in zip(*(c.to_pylist() for c in asked.columns), strict=True):
            base = xway % self._task.base_expressways, vid % self._task.base_vehicles
            spent = self._database.execute(
                "SELECT toll[$3] FROM tolls WHERE xway = $1 AND vid = $2", [*base, day]
            ).fetchall()
            found.append((EXPENDITURE, time, qid, 0, spent[0][0] if spent else 0))
        return [pa.table(list(map(list, zip(*found, strict=True))), schema=ANSWER)] if found else []


def serve(road: LinearRoad, client: socket.socket) -> None:
    """Answer a driver; a second ends with its time mark."""
    with (
        client.makefile("rb") as source,
        client.makefile("wb") as sink,
        pa.ipc.new_stream(sink, ANSWER) as writer,
    ):
        sink.flush()
        for second, rows in second_tables(source):
            for found in road.answer(second, rows):
                writer.write_table(found.cast(ANSWER))
            sink.flush()


def main() -> None:
    """Load the history and answer one driver."""
    road = LinearRoad(Task.parsed(sys.argv[1:]))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        print(f"listening on {host}:{port}", flush=True)
        client, _ = listener.accept()
        with client:
            serve(road, client)


if __name__ == "__main__":
    main()
