"""Several files, on one worker or more: expressways apart from each other, accounts together.

Every worker is a thread with an engine of its own over the files of some expressways, with a part
of the query for each, so that what a part keeps stays in the cache; compiled operators run without
Python's lock. Parts hand over many seconds at once; the main thread puts the same seconds of all
of them together and keeps the accounts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.queries.feeding import Backlog, Clock, RowFeed
from linearroad.queries.history import History
from linearroad.queries.network import RAW, build_shard, look_up
from linearroad.queries.operators.handover import TABLES as COLUMNS
from linearroad.queries.operators.handover import hand_over, put_in_order, settle_accounts
from linearroad.queries.summary import RunOptions

__all__ = ["Worker", "settled"]

#: At full speed, so many seconds of the stream are put together at once.
TOGETHER_S = 15
FOR_EVER = 2**31

#: Tables that travel together, the first column of each being the time that orders it.
ANSWERS = ("time", "kind", "who", "value", "amount")
CHARGES = ("charge_time", "charge_vid", "charge")
ASKED = ("ask_time", "ask_vid", "ask_qid")
TABLES = (ANSWERS, CHARGES, ASKED)
GATHERED = xs.schema(
    {"upto": int}
    | {name: xs.Segment(np.dtype(COLUMNS[name])) for table in TABLES for name in table}
)
Batch = dict[str, NDArray[Any]]


class Pending:
    """What has been handed over of a file and nobody has taken yet."""

    def __init__(self, backlog: Backlog) -> None:
        self.backlog = backlog
        self.batches: queue.SimpleQueue[tuple[int, Batch] | BaseException | None]
        self.batches = queue.SimpleQueue()
        self.upto = -1
        self.ended = False
        self._held: list[Batch] = []

    def more(self) -> None:
        """Wait for the next batch."""
        with self.backlog.wanted():
            item = self.batches.get()
        if isinstance(item, BaseException):
            raise item
        if item is None:
            self.ended = True
        else:
            self.upto = item[0]
            if item[1]:
                self._held.append(item[1])
                self.backlog.add(-1)

    def take(self, upto: int) -> list[Batch]:
        """Everything up to a second."""
        taken, kept = [], []
        for batch in self._held:
            early: Batch = {}
            late: Batch = {}
            for table in TABLES:
                cut = int(np.searchsorted(batch[table[0]], upto, side="right"))
                early |= {name: batch[name][:cut] for name in table}
                late |= {name: batch[name][cut:] for name in table}
            taken.append(early)
            if any(len(late[table[0]]) for table in TABLES):
                kept.append(late)
        self._held = kept
        return taken


class Worker(threading.Thread):
    """An engine of its own for some of the files: a part of the query for each."""

    def __init__(
        self, feeds: list[RowFeed], history: History, options: RunOptions, burst: int
    ) -> None:
        super().__init__(daemon=True)
        self.feeds, self.stop = feeds, threading.Event()
        self.options, self.burst = options, burst
        self.pending = [Pending(feed.backlog) for feed in feeds]
        self.query = xs.Query("linear road")
        for number, (feed, pending) in enumerate(zip(feeds, self.pending, strict=True), 1):
            self._add(feed, pending, history, f" {number}")
        self.reports = 0

    def _add(self, feed: RowFeed, pending: Pending, history: History, part: str) -> None:
        rows = self.query.source(xs.io.iterable(feed.tuples, out=RAW), name=f"rows{part}")
        shard = build_shard(rows, self.options.rules, part)
        expenditures, travel_times = look_up(shard.requests, history, part)
        told = ("toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg")
        seconds = shard.requests.zip(
            shard.notifications.select(*told),
            shard.charges,
            expenditures.select("qid", "balance"),
            travel_times.select("qid", "seconds", "toll"),
        ).iterate(hand_over)
        names = [field.name for field in seconds.schema][1:]

        def take(upto: int, *columns: xs.SigSeg) -> None:
            arrays = (np.asarray(column) for column in columns)
            pending.batches.put((upto, dict(zip(names, arrays, strict=True))))
            pending.backlog.add(1)

        seconds.sink(take)
        feed.on_nothing_until = lambda second: pending.batches.put((second, {}))
        feed.end_rejects_in_sinks(shard.rejects)

    def run(self) -> None:
        """The worker's engine, to its end."""
        last: BaseException | None = None
        try:
            done = self.query.run(
                self.options.scheduler, self.options.memory, self.burst, stop=self.stop
            )
            self.reports = sum(
                stats.samples
                for name, stats in done.stats.items()
                if name.startswith("segment statistics")
            )
        except BaseException as error:
            last = error
        for pending in self.pending:
            pending.batches.put(last)


def together(workers: list[Worker], clock: Clock) -> Iterator[tuple[Any, ...]]:
    """The same seconds of all files as one, in the order of time."""
    pending = [one for worker in workers for one in worker.pending]
    ahead_s = TOGETHER_S if clock.speed is None else 0
    reached = -1
    while not all(one.ended for one in pending):
        for one in pending:
            while not one.ended and one.upto <= reached + ahead_s:
                one.more()
        reached = min((one.upto for one in pending if not one.ended), default=FOR_EVER)
        if clock.stop.is_set():  # whoever has ended has not come to its end
            reached = min(one.upto for one in pending)
        parts = [batch for one in pending for batch in one.take(reached)]
        yield (reached, *_in_order(parts))


def _in_order(parts: list[Batch]) -> Iterator[xs.SigSeg]:
    """Columns of all tables (`GATHERED`), each table ordered by time."""
    for table in TABLES:
        columns = {
            name: np.concatenate([np.empty(0, COLUMNS[name]), *(part[name] for part in parts)])
            for name in table
        }
        order = np.argsort(columns[table[0]], kind="stable") if len(parts) > 1 else None
        for column in columns.values():
            yield xs.SigSeg(column if order is None else column[order])


@xs.kernel
def at_their_time(upto):  # type: ignore[no-untyped-def]
    """Instead of when they leave the engine: it is not paced."""
    return -1


def settled(query: xs.Query, workers: list[Worker], clock: Clock) -> xs.Stream:
    """The answers of all workers, balances among them, as `operators.answers` has them."""
    gathered = query.source(
        xs.io.iterable(lambda: together(workers, clock), out=GATHERED),
        name="seconds of all",
    )
    money = gathered.select(*CHARGES, *ASKED, name="charges and requests")
    balances = money.iterate(settle_accounts, name="accounts")
    answered = gathered.select("kind", "time", "who", "value", "amount", name="other answers")
    emit_ms: Callable[..., Any] = at_their_time if clock.speed is None else clock.emit_ms
    out = None if clock.speed is None else int
    left = answered.zip(balances, name="answers").zip(
        gathered.select("upto", name="up to").map(emit_ms, out=out, name="emit")
    )
    return left.iterate(put_in_order, name="answers in order")
