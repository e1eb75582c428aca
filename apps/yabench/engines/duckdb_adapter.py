"""DuckDB, polled: items are inserted into a table, and each window is queried when it closes.

The query sees the table `items`, which has the items of the window only.
"""

from __future__ import annotations

import json
import sys

import duckdb
import pyarrow as pa


def main() -> None:
    """Read Arrow batches, and query each window once an item at or after its end has come."""
    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)
    size, slide, query = task["size_ms"], task["slide_ms"], task["query"]
    database = duckdb.connect(":memory:", config={"threads": 1})
    database.execute(
        "CREATE TABLE stream (time BIGINT, observation BIGINT, station BIGINT, value DOUBLE)"
    )
    print('{"ready": true}', flush=True)
    waiting: list[pa.RecordBatch] = []
    number = 1

    def report(end: int) -> None:
        if waiting:
            batch = pa.Table.from_batches(waiting)
            database.register("batch", batch)
            database.execute("INSERT INTO stream SELECT * FROM batch")
            database.unregister("batch")
            waiting.clear()
        start = max(0, end - size)
        database.execute(f"DELETE FROM stream WHERE time < {start}")
        database.execute(f"CREATE OR REPLACE VIEW items AS SELECT * FROM stream WHERE time < {end}")
        columns = database.execute(query).fetchnumpy()
        found = {name: column.tolist() for name, column in columns.items()}
        print(json.dumps({"timestamp": end, "columns": found}), flush=True)

    last = -1
    for batch in pa.ipc.open_stream(sys.stdin.buffer):
        time = batch.column(0)[0].as_py()
        while time >= number * slide:
            report(number * slide)
            number += 1
        waiting.append(batch)
        last = time
    while number * slide - size <= last:
        report(number * slide)
        number += 1


main()
