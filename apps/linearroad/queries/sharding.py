"""Several files, on one worker or more: expressways apart from each other, accounts together.

Every worker is a thread with an engine of its own over the files of some expressways, with a part
of the query for each, so that what a part keeps stays in the cache; compiled operators run without
Python's lock. Parts hand over many seconds at once; the main thread puts the same seconds of all
of them together and keeps the accounts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.queries.copying import ORIGINAL, Copy
from linearroad.queries.feeding import LOOK_EVERY_S, Backlog, Clock, RowFeed
from linearroad.queries.history import History
from linearroad.queries.network import RAW, Shard, build_shard, copy_of, decode, look_up
from linearroad.queries.operators.handover import TABLES as COLUMNS
from linearroad.queries.operators.handover import hand_over, put_in_order, settle_accounts
from linearroad.queries.summary import RunOptions

__all__ = ["BURST", "HandingWorker", "Part", "Worker", "settled"]

BURST = 1  # chunks that are let in before all is worked off: they stay in the cache
#: At full speed, so many seconds of the stream are put together at once.
TOGETHER_S = 30
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


@dataclass(frozen=True)
class Part:
    """What is worked out for one copy of a file, and its number."""

    number: int
    shard: Shard
    expenditures: xs.Stream
    travel_times: xs.Stream

    def looked_up(self) -> tuple[xs.Stream, xs.Stream]:
        """The answers from history, without their times."""
        return (
            self.expenditures.select("qid", "balance"),
            self.travel_times.select("qid", "seconds", "toll"),
        )


class Pending:
    """What has been handed over of a file and nobody has taken yet."""

    def __init__(self, backlog: Backlog) -> None:
        self.backlog = backlog
        self.batches: queue.SimpleQueue[tuple[int, Batch] | BaseException | None]
        self.batches = queue.SimpleQueue()
        self.upto = -1
        self.ended = False
        self._held: list[Batch] = []

    def more(self) -> bool:
        """Wait a little for the next batch; whether one came."""
        with self.backlog.wanted():
            try:
                item = self.batches.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                return False
        if isinstance(item, BaseException):
            raise item
        if item is None:
            self.ended = True
        else:
            # A file that has come to its end says so before what its engine still holds arrives.
            self.upto = max(self.upto, item[0])
            if item[1]:
                self._held.append(item[1])
                self.backlog.add(-1)
        return True

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
    """An engine of its own for some of the files, or for some copies of all of them.

    Each copy of a file is a part of the query, numbered as the expressway that it would be.
    """

    def __init__(
        self, feeds: list[RowFeed], copies: list[Copy], history: History, options: RunOptions
    ) -> None:
        super().__init__(daemon=True)
        self.feeds, self.copies, self.options = feeds, copies, options
        self.histories = [history.copied(copy.xway_by, copy.vid_by) for copy in copies]
        self.stop = threading.Event()
        self.query = xs.Query("linear road")
        self.done: xs.Run | None = None
        self.reports = 0

    @property
    def rows(self) -> int:
        """Rows that have been given to the engine, copies included."""
        return len(self.copies) * sum(feed.rows for feed in self.feeds)

    def parts(self, feed: RowFeed) -> Iterator[Part]:
        """The parts of the query behind a file: one for each copy, up to its answers."""
        name = f" {feed.number}"
        rows = self.query.source(xs.io.iterable(feed.tuples, out=RAW), name=f"rows{name}")
        seconds = decode(rows, name)
        for copy, history in zip(self.copies, self.histories, strict=True):
            number = copy.xway_by + feed.number
            own = seconds
            if copy != ORIGINAL:
                own = copy_of(seconds, copy.vid_by, copy.xway_by, copy.qid_by, f" {number}")
            shard = build_shard(own, self.options.rules, f" {number}")
            if copy == ORIGINAL:
                feed.end_rejects_in_sinks((seconds.select("reject"), shard.rejects))
            else:  # what is rejected of a copy has been told of its original
                shard.rejects.count()
            yield Part(number, shard, *look_up(shard.requests, history, f" {number}"))

    def execute(self, state: Mapping[str, xs.KernelState] | None = None) -> None:
        """Run the engine to its end."""
        self.done = self.query.run(
            self.options.scheduler, self.feeds[0].manager, BURST, stop=self.stop, state=state
        )
        self.reports = sum(
            stats.samples
            for name, stats in self.done.stats.items()
            if name.startswith("segment statistics")
        )


class HandingWorker(Worker):
    """Hands all answers over, and what is to be charged, for the main thread to put together."""

    def __init__(
        self, feeds: list[RowFeed], copies: list[Copy], history: History, options: RunOptions
    ) -> None:
        super().__init__(feeds, copies, history, options)
        self.pending = [Pending(feed.backlog) for feed in feeds]
        for feed, pending in zip(feeds, self.pending, strict=True):
            self._add(feed, pending)

    def _add(self, feed: RowFeed, pending: Pending) -> None:
        parts = [self._answered(part) for part in self.parts(feed)]
        handed = (
            parts[0]
            .union(*parts[1:], name=f"all copies {feed.number}")
            .iterate(hand_over, len(parts), name=f"handed over {feed.number}")
        )
        names = [field.name for field in handed.schema][1:]

        def take(upto: int, *columns: xs.SigSeg) -> None:
            batch = dict(zip(names, (np.asarray(column) for column in columns), strict=True))
            pending.batches.put((upto, batch))
            pending.backlog.add(1)

        handed.sink(take)
        feed.on_nothing_until = lambda second: pending.batches.put((second, {}))

    def _answered(self, part: Part) -> xs.Stream:
        """A second of a part as `hand_over` takes it."""
        shard = part.shard
        told = ("toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg")
        return shard.requests.zip(
            shard.notifications.select(*told), shard.charges, *part.looked_up()
        )

    def run(self) -> None:
        """The worker's engine, to its end."""
        last: BaseException | None = None
        try:
            self.execute()
        except BaseException as error:
            last = error
            self.feeds[0].clock.give_up()
        for pending in self.pending:
            pending.batches.put(last)


def together(workers: list[HandingWorker], clock: Clock) -> Iterator[tuple[Any, ...]]:
    """The same seconds of all files as one, in the order of time.

    A file that has come to its end is complete for ever. One that was stopped is complete up to the
    second that it told last, and so is the whole: all workers are waited for, and what some of them
    have answered beyond that second is left out.
    """
    pending = [one for worker in workers for one in worker.pending]
    ahead_s = TOGETHER_S if clock.speed is None else 0
    reached = -1
    while not all(one.ended for one in pending):
        for one in pending:
            while not one.ended and (one.upto <= reached + ahead_s or _any_was_stopped(pending)):
                came = one.more()
                if clock.cut.is_set():  # workers have been ended within a second
                    return
                if not came:  # so that the run can be looked at
                    yield (min(reached, FOR_EVER), *_in_order([]))
        reached = min(one.upto for one in pending)
        parts = [batch for one in pending for batch in one.take(reached)]
        yield (min(reached, FOR_EVER), *_in_order(parts))


def _any_was_stopped(pending: list[Pending]) -> bool:
    """Whether a file has ended before its end, so that no further second will be complete."""
    return any(one.ended and one.upto < FOR_EVER for one in pending)


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


def settled(query: xs.Query, workers: list[HandingWorker], clock: Clock) -> xs.Stream:
    """The answers of all workers, balances among them, as `operators.answers` has them."""
    gathered, balances = _balances(query, workers, clock)
    answered = gathered.select("kind", "time", "who", "value", "amount", name="other answers")
    upto = gathered.select("upto", name="up to")
    if clock.speed is None:
        left = upto.map(at_their_time, name="emit")
    else:
        left = upto.map(clock.emit_ms, out=int, name="emit")
    told = balances.select("balance_time", "balance_qid", "bal", name="balances")
    return answered.zip(told, left, name="answers").iterate(put_in_order, name="answers in order")


def _balances(
    query: xs.Query, workers: list[HandingWorker], clock: Clock
) -> tuple[xs.Stream, xs.Stream]:
    """What all workers hand over, and the balances that follow."""
    gathered = query.source(
        xs.io.iterable(lambda: together(workers, clock), out=GATHERED), name="seconds of all"
    )
    money = gathered.select(*CHARGES, *ASKED, name="charges and requests")
    return gathered, money.iterate(settle_accounts, name="accounts")
