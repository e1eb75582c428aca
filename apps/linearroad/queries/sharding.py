"""Several workers: expressways apart from each other, accounts together.

Every worker is a thread with an engine of its own over the files of some expressways; compiled
operators run without Python's lock. It hands over each second (requests, notifications, charges);
the main thread puts the same seconds of all workers together and keeps the accounts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

import xstream as xs
from linearroad.queries.feeding import RowFeed
from linearroad.queries.network import RAW, build_shard

__all__ = ["HANDED_OVER", "Worker", "together"]

#: Seconds that a worker may be ahead: what bounds memory.
AHEAD = 128

HANDED_OVER = xs.schema(
    {
        "time": int,
        "request": xs.Segment(np.int32),
        "toll_vid": xs.Segment(np.int32),
        "toll_lav": xs.Segment(np.int32),
        "toll": xs.Segment(np.int64),
        "alert_vid": xs.Segment(np.int32),
        "alert_seg": xs.Segment(np.int32),
        "charge_vid": xs.Segment(np.int32),
        "charge": xs.Segment(np.int64),
    }
)


class Worker(threading.Thread):
    """An engine of its own for some of the files."""

    def __init__(self, feed: RowFeed, rules: str, scheduler: str, memory: str, burst: int) -> None:
        super().__init__(daemon=True)
        self.feed, self.stop = feed, threading.Event()
        self.scheduler, self.memory, self.burst = scheduler, memory, burst
        self.seconds: queue.Queue[tuple[Any, ...] | BaseException | None] = queue.Queue(AHEAD)
        self.query = xs.Query("linear road")
        rows = self.query.source(xs.io.iterable(feed.tuples, out=RAW), name="rows")
        shard = build_shard(rows, rules)
        notified = shard.notifications.select(*list(HANDED_OVER_NOTIFIED), name="notifications")
        second = shard.requests.zip(notified, shard.charges, name="second handed over")
        second.sink(self._hand_over, name="handed over")
        feed.end_rejects_in_sinks(shard.rejects)
        self.reports = 0

    def _hand_over(self, *second: Any) -> None:
        while not self.stop.is_set():
            try:
                self.seconds.put(second, timeout=0.1)
                return
            except queue.Full:
                continue

    def run(self) -> None:
        """The worker's engine, to its end."""
        last: BaseException | None = None
        try:
            done = self.query.run(self.scheduler, self.memory, self.burst, stop=self.stop)
            self.reports = done.stats["segment statistics"].samples
        except BaseException as error:
            last = error
        while not self.stop.is_set():
            try:
                self.seconds.put(last, timeout=0.1)
                return
            except queue.Full:
                continue


HANDED_OVER_NOTIFIED = ("toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg")


def together(workers: list[Worker]) -> Iterator[tuple[Any, ...]]:
    """The same second of all workers as one, in the order of time."""
    heads: list[tuple[Any, ...] | None] = [_next(worker) for worker in workers]
    while any(head is not None for head in heads):
        now = min(head[0] for head in heads if head is not None)
        parts = []
        for i, head in enumerate(heads):
            if head is not None and head[0] == now:
                parts.append(head)
                heads[i] = _next(workers[i])
        yield (now, *(_joined([part[k] for part in parts]) for k in range(1, len(HANDED_OVER))))


def _next(worker: Worker) -> tuple[Any, ...] | None:
    head = worker.seconds.get()
    if isinstance(head, BaseException):
        raise head
    return head


def _joined(columns: list[xs.SigSeg]) -> xs.SigSeg:
    if len(columns) == 1 and columns[0].start == 0:
        return columns[0]
    return xs.SigSeg(np.concatenate([np.asarray(column) for column in columns]))
