"""Linear Road as a bytewax dataflow; an item is what one expressway has in one second.

python -m linearroad.peers.bytewax.program TASK...
"""

from __future__ import annotations

import queue
import socket
import sys
import threading
from collections import defaultdict
from typing import Any, NamedTuple

import bytewax.operators as op
import numpy as np
import pyarrow as pa
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from linearroad.generation.layout import Layout
from linearroad.history.store import TOLL_VIDS, TOLLS
from linearroad.peers.bytewax.road import Reports, Road, Told
from linearroad.peers.crossings import Journeys
from linearroad.peers.system import Task
from linearroad.peers.tables import (
    ANSWER,
    BALANCE,
    EXPENDITURE,
    REPORT,
    second_tables,
    travel_times,
)

TOLL, ALERT = 0, 1  # kinds of answers


class Second(NamedTuple):
    """A second of the stream: reports by expressway, requests for balances, all rows."""

    time: int
    reports: dict[int, Reports]
    balances: list[tuple[int, int]]  # vehicle, number of the request
    rows: pa.Table


class Rows(StatelessSourcePartition[Second]):
    """Seconds from the driver, which a thread receives."""

    def __init__(self, client: socket.socket) -> None:
        self._held: queue.SimpleQueue[Second | None] = queue.SimpleQueue()
        threading.Thread(target=self._receive, args=(client,), daemon=True).start()

    def _receive(self, client: socket.socket) -> None:
        with client.makefile("rb") as source:
            for time, rows in second_tables(source):
                self._held.put(second_of(time, rows))
        self._held.put(None)

    def next_batch(self) -> list[Second]:
        """Return the next second, if there is one."""
        try:
            found = self._held.get_nowait()
        except queue.Empty:
            return []
        if found is None:
            raise StopIteration
        return [found]


def second_of(time: int, rows: pa.Table) -> Second:
    """Divide the rows of a second by expressway."""
    kinds = rows["type"].to_numpy()
    reports = {name: rows[name].to_numpy()[kinds == REPORT] for name in ("xway", *Reports._fields)}
    order = np.argsort(reports["xway"], kind="stable")
    xways, begins = np.unique(reports["xway"][order], return_index=True)
    ends = [*begins[1:], len(order)][: len(begins)]
    ordered = [reports[name][order] for name in Reports._fields]
    by_xway = {
        int(xway): Reports(*(column[begin:end].tolist() for column in ordered))
        for xway, begin, end in zip(xways, begins, ends, strict=True)
    }
    asked = kinds == BALANCE
    balances = zip(
        rows["vid"].to_numpy()[asked].tolist(), rows["qid"].to_numpy()[asked].tolist(), strict=True
    )
    return Second(time, by_xway, list(balances), rows)


class Expressway(StatefulBatchLogic[Any, Any, Road]):
    """An expressway: reports in, answers and charges out."""

    def __init__(self, road: Road) -> None:
        self._road = road

    def on_batch(self, values: list[tuple[int, Reports]]) -> tuple[list[tuple[int, Told]], bool]:
        """Answer the reports of seconds."""
        return [(time, self._road.answer(time, reports)) for time, reports in values], False

    def snapshot(self) -> Road:
        """Return the state; nothing keeps it, as there is no recovery."""
        return self._road


class Accounts(StatefulBatchLogic[Any, Any, dict[int, int]]):
    """All accounts. A second is complete when every expressway in it has told its charges."""

    def __init__(self, balances: dict[int, int], history: History) -> None:
        self._balances, self._history = balances, history
        self._seconds: dict[int, Second] = {}
        self._told: defaultdict[int, list[Told]] = defaultdict(list)

    def on_batch(self, values: list[Any]) -> tuple[list[pa.Table], bool]:
        """Answer the seconds that have become complete."""
        for value in values:
            if isinstance(value, Second):
                self._seconds[value.time] = value
            else:
                self._told[value[0]].append(value[1])
        tables = []
        for time in sorted(self._seconds):
            if len(self._told[time]) < len(self._seconds[time].reports):
                break
            tables += self._answer(self._seconds.pop(time), self._told.pop(time))
        return tables, False

    def _answer(self, second: Second, told: list[Told]) -> list[pa.Table]:
        balances = self._balances
        for part in told:
            for vid, toll in part.charges:
                balances[vid] = balances.get(vid, 0) + toll
        time = second.time
        tolls = [(TOLL, time, *each) for part in told for each in part.tolls]
        alerts = [(ALERT, time, *each, 0) for part in told for each in part.alerts]
        asked = [(BALANCE, time, q, time, balances.get(v, 0)) for v, q in second.balances]
        found = [*tolls, *alerts, *asked, *self._history.expenditures(second.rows)]
        tables = [pa.table([*zip(*found, strict=True)], schema=ANSWER)] if found else []
        kinds = second.rows["type"].to_numpy()
        return [*tables, *travel_times(second.rows, kinds, self._history.journeys)]

    def snapshot(self) -> dict[int, int]:
        """Return the state; nothing keeps it, as there is no recovery."""
        return self._balances


class History:
    """Ten weeks of history."""

    def __init__(self, task: Task) -> None:
        self._task = task
        stores = [Layout(task.history).store(xway) for xway in range(task.base_expressways)]
        self._vids = [np.load(store / TOLL_VIDS) for store in stores]
        self._tolls = [np.load(store / TOLLS, mmap_mode="r") for store in stores]
        self.journeys = Journeys(task.history, task.base_expressways)

    def expenditures(self, rows: pa.Table) -> list[tuple[int, int, int, int, int]]:
        """The answers to the expenditure requests of a second."""
        asked = rows.filter(pa.array(rows["type"].to_numpy() == EXPENDITURE))
        columns = (asked[name].to_pylist() for name in ("time", "vid", "xway", "qid", "day"))
        return [
            (EXPENDITURE, time, qid, 0, self._spent(vid, xway, day))
            for time, vid, xway, qid, day in zip(*columns, strict=True)
        ]

    def _spent(self, vid: int, xway: int, day: int) -> int:
        base, wanted = xway % self._task.base_expressways, vid % self._task.base_vehicles
        at = int(np.searchsorted(self._vids[base], wanted))
        there = at < len(self._vids[base]) and self._vids[base][at] == wanted
        return int(self._tolls[base][at, day - 1]) if there else 0


class Answers(StatelessSinkPartition[tuple[str, pa.Table]]):
    """Answers to the driver."""

    def __init__(self, client: socket.socket) -> None:
        self._sink = client.makefile("wb")
        self._writer = pa.ipc.new_stream(self._sink, ANSWER)
        self._sink.flush()

    def write_batch(self, items: list[tuple[str, pa.Table]]) -> None:
        """Write tables of answers."""
        for _, table in items:
            self._writer.write_table(table)
        self._sink.flush()

    def close(self) -> None:
        """End the stream."""
        self._writer.close()
        self._sink.close()


class Wire(DynamicSource[Second], DynamicSink[tuple[str, pa.Table]]):
    """The connection to the driver, as the input and the output of the dataflow."""

    def __init__(self, client: socket.socket, part: Any) -> None:
        self._client, self._part = client, part

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        """Return the reader or the writer."""
        return self._part(self._client)


def linear_road(task: Task, client: socket.socket) -> Dataflow:
    """The dataflow of a task."""
    history = History(task)
    flow = Dataflow("linear_road")
    seconds = op.input("driver", flow, Wire(client, Rows))
    reports = op.flat_map(
        "by_expressway",
        seconds,
        lambda s: [(str(xway), (s.time, reports)) for xway, reports in s.reports.items()],
    )
    told = op.stateful_batch("expressways", reports, lambda state: Expressway(state or Road()))
    gathered = op.merge(
        "gather",
        op.map("to_accounts", told, lambda item: ("accounts", item[1])),
        op.map("requests", seconds, lambda second: ("accounts", second)),
    )
    answers = op.stateful_batch("accounts", gathered, lambda state: Accounts(state or {}, history))
    op.output("answers", answers, Wire(client, Answers))
    return flow


def main() -> None:
    """Load the history and answer one driver."""
    task = Task.parsed(sys.argv[1:])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        print(f"listening on {host}:{port}", flush=True)
        client, _ = listener.accept()
    with client:
        cluster_main(linear_road(task, client), [], 0)


if __name__ == "__main__":
    main()
