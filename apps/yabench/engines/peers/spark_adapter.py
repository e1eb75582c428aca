"""Spark Structured Streaming: event-time windows in append mode, fed through its socket source.

A window's items are collected by the streaming query; once the watermark has passed its end, the
query of the task (Spark SQL over the table `items`) is evaluated over them.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
#: The time of the last item, which moves the watermark past all windows; about the year 2100.
LAST_MS = 2**42
ITEM = "time BIGINT, observation BIGINT, station BIGINT, value DOUBLE"


def session(folder: str) -> Any:
    """Start Spark, on loopback and without its user interface."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.checkpointLocation", folder)
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )


def forward(server: socket.socket) -> None:
    """Send the items on standard input to Spark, and one that closes all windows."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while piece := sys.stdin.buffer.read1(1 << 16):  # type: ignore[union-attr]
            connection.sendall(piece)
        end = {"time": LAST_MS, "observation": -1, "station": -1, "value": 0.0}
        connection.sendall(json.dumps(end).encode() + b"\n")
        closed.wait()


closed = threading.Event()


def main() -> None:
    """Run the query of a task until its input ends."""
    from pyspark.sql import functions as f

    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)
    if task["policy"] not in ("window-close", "non-empty"):
        sys.exit(f"Spark reports when a window closes; it has no policy {task['policy']}")
    size, slide = (f"{task[key]} milliseconds" for key in ("size_ms", "slide_ms"))
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        spark = session(folder)
        lines = spark.readStream.format("socket").option("host", "127.0.0.1")
        items = lines.option("port", server.getsockname()[1]).load()
        items = items.select(f.from_json("value", ITEM).alias("item")).select("item.*")
        items = items.withColumn("at", f.timestamp_millis("time")).withWatermark("at", "0 seconds")
        # Spark's windows start, ours end, at a multiple of the slide.
        first = f"{-task['size_ms'] % task['slide_ms']} milliseconds"
        windows = items.groupBy(f.window("at", size, slide, first)).agg(
            f.collect_list(f.struct("time", "observation", "station", "value")).alias("content")
        )

        def report(batch: Any, number: int) -> None:
            for window, content in batch.orderBy("window").collect():
                end = round(window.end.timestamp() * 1000)
                if end > LAST_MS - task["size_ms"]:
                    closed.set()
                    continue
                spark.createDataFrame(content, ITEM).createOrReplaceTempView("items")
                found = spark.sql(task["query"]).toPandas().to_dict("list")
                print(json.dumps({"timestamp": end, "columns": found}), flush=True)

        query = windows.writeStream.outputMode("append").foreachBatch(report)
        threading.Thread(target=forward, args=(server,), daemon=True).start()
        running = query.start()
        print('{"ready": true}', flush=True)
        while not ended(running):
            running.awaitTermination(1)
        running.stop()
        spark.stop()


def ended(running: Any) -> bool:
    """Whether all windows have been reported: the watermark is that of the last item."""
    progress = running.lastProgress
    mark = progress and progress["eventTime"].get("watermark", "")
    return bool(mark) and mark >= "2100" and progress["numInputRows"] == 0


main()
