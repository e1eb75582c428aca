"""The engines of a run: each answers for some files, or for some copies of all of them.

Written answers pass to one place, the *hub*, which keeps the accounts and orders the answers by
time; with one engine that is the engine itself, with several it is a query of its own, and tables
pass to it through channels. Digested answers stay where they arise: then an engine has all files of
its copies, and their accounts with them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.network import Network, Part
from linearroad.operators.answers import TABLE, batch
from linearroad.operators.digests import (
    DIGEST_WIDTH,
    digest_answers,
    digest_balances,
    tell,
)
from linearroad.output.digests import Digests, unshifted
from linearroad.output.summary import RunOptions
from linearroad.rules import rules_named
from linearroad.run.copies import ORIGINAL, Copy
from linearroad.run.feed import RAW, Feed
from linearroad.schema import BALANCE, KINDS
from linearroad.tables.history import History

__all__ = ["DigestOutput", "Worker", "connect_writer"]

#: Chunks that are let in before all is worked off, so that they stay in the cache; a hub takes what
#: has come.
BURST, HUB_BURST = 1, 64
#: Seconds of a table that wait between an engine and the hub.
WAITING = 256


class Worker:
    """An engine's query over some files and copies of them; each copy of a file is a part."""

    def __init__(
        self, feeds: list[Feed], copies: list[Copy], history: History, options: RunOptions
    ) -> None:
        self.feeds, self.copies, self.options = feeds, copies, options
        self.network = Network(xs.Query("linear road"), rules_named(options.rules))
        histories = [history.copied(copy.xway_by, copy.vid_by) for copy in copies]
        #: By file and copy.
        self.parts = [self._parts(feed, histories) for feed in feeds]
        #: By copy, where this engine keeps them.
        self.accounts: list[xs.Stream] = []
        self.channels: list[xs.io.Channel] = []
        self.done: xs.Run | None = None

    def _parts(self, feed: Feed, histories: list[History]) -> list[Part]:
        name = f" {feed.number}"
        rows = self.network.query.source(
            xs.io.iterable(feed.tuples, out=RAW), name=f"rows{name}"
        )  # fmt: skip
        seconds = self.network.seconds(rows, name)
        parts = []
        for copy, history in zip(self.copies, histories, strict=True):
            number = copy.xway_by + feed.number
            own = self.network.copied(seconds, copy, f" {number}")
            part = self.network.part(own, history, number, f" {number}")
            if copy == ORIGINAL:
                feed.end_rejects_in_sinks(seconds, part.reports)
            parts.append(part)
        return parts

    def groups(self) -> Iterator[tuple[Copy, list[Part]]]:
        """Copies, and the parts of each: those whose vehicles may meet."""
        return zip(self.copies, map(list, zip(*self.parts, strict=True)), strict=True)

    def balances(self) -> list[xs.Stream]:
        """Accounts in this engine, for each copy; they need all of its files."""
        self.accounts = [
            self.network.balances([part.money for part in parts], f" {copy.xway_by}")
            for copy, parts in self.groups()
        ]
        return self.accounts

    @property
    def rows(self) -> int:
        """Rows that have been given to the engine, copies included."""
        return len(self.copies) * sum(feed.rows for feed in self.feeds)

    @property
    def reports(self) -> int:
        """Reports that were used; second ones have been rejected before."""
        assert self.done is not None
        return sum(
            self.done.stats_of(part.kept["segment statistics"]).samples
            for parts in self.parts
            for part in parts
        )

    def job(
        self, cut: threading.Event, state: Callable[[Worker], Any] | None = None,
        progress: Callable[[xs.Run], None] | None = None,
    ) -> xs.Run:  # fmt: skip
        """Run the engine to its end, or until `cut` is set."""
        try:
            self.done = self.network.query.run(
                self.options.scheduler, self.feeds[0].manager, BURST, stop=cut,
                state=None if state is None else state(self), progress=progress or False,
            )  # fmt: skip
            return self.done
        except BaseException:
            self.feeds[0].schedule.give_up()
            raise
        finally:
            for channel in self.channels:  # an engine that was cut short has not closed them
                channel.close()


#: Called with a second and a batch of answers up to it: kind, time, who, value, amount.
Take = Callable[..., None]


def connect_writer(workers: list[Worker], take: Take, at_least: int) -> Network:
    """Order the answers of all workers by time and give them to `take`, so many rows at once.

    Returns the hub. It is the only worker's own, or has to run beside the workers.
    """
    if len(workers) == 1:
        hub = workers[0].network
    else:
        hub = Network(xs.Query("linear road"), workers[0].network.rules)
    tables, money = [], []
    for worker in workers:
        for parts in worker.parts:
            tables += [_at_hub(table, hub, worker) for part in parts for table in part.tables]
            money.append([_at_hub(part.money, hub, worker) for part in parts])
    tables += [
        hub.balances(streams, f" {copy.xway_by}")
        for copy, streams in _by_copy(workers, money)
    ]  # fmt: skip
    answers = [table.select(*TABLE) for table in tables]
    merged = answers[0].merge(*answers[1:], by="time", name="answers by time")
    batches = merged.iterate(batch, len(answers), at_least, name="answers")
    hub.stages["output"] += [*answers, merged, batches]
    batches.sink(take, name="output")
    return hub


def _by_copy(
    workers: list[Worker], money: list[list[xs.Stream]]
) -> Iterator[tuple[Copy, list[xs.Stream]]]:
    """The streams of all files of each copy; `money` is by file of all workers, and by copy."""
    files = [(worker, streams) for worker, streams in _by_file(workers, money)]
    for copy in dict.fromkeys(copy for worker in workers for copy in worker.copies):
        yield (
            copy,
            [
                streams[worker.copies.index(copy)]
                for worker, streams in files
                if copy in worker.copies
            ],
        )


def _by_file(
    workers: list[Worker], money: list[list[xs.Stream]]
) -> Iterator[tuple[Worker, list[xs.Stream]]]:
    streams = iter(money)
    for worker in workers:
        for _ in worker.feeds:
            yield worker, next(streams)


def _at_hub(stream: xs.Stream, hub: Network, worker: Worker) -> xs.Stream:
    """A worker's stream in the query of the hub."""
    if stream.query is hub.query:
        return stream
    channel = xs.io.channel(stream.schema, WAITING)
    stream.write(channel)
    worker.channels.append(channel)
    return hub.query.source(channel)


#: Called with a second and how many answers of each kind have been given since the last call.
Told = Callable[[int, NDArray[np.int64]], None]


class DigestOutput:
    """Answers of one worker that are counted and digested where they arise."""

    def __init__(self, worker: Worker, told: Told) -> None:
        self.worker = worker
        self._digests = [
            [self._digest(part) for part in parts] for parts in worker.parts
        ]  # by file and copy
        for feed, digests in zip(worker.feeds, self._digests, strict=True):
            tables = len(digests) * len(worker.parts[0][0].tables)
            self._tell(digests, tables, str(feed.number), told)
        self._balances = [
            balances.iterate(
                digest_balances, len(worker.feeds), name=f"digest of balances {copy.xway_by}"
            )
            for copy, balances in zip(worker.copies, worker.balances(), strict=True)
        ]
        self._tell(self._balances, len(self._balances), "of balances", told)

    def _digest(self, part: Part) -> xs.Stream:
        answers = part.tables[0].merge(*part.tables[1:], name=f"answers {part.number}")
        digest = answers.iterate(digest_answers, name=f"digest {part.number}")
        self.worker.network.stages["output"] += [answers, digest]
        return digest

    def _tell(self, digests: list[xs.Stream], tables: int, name: str, told: Told) -> None:
        merged = digests[0].merge(*digests[1:], name=f"all copies {name}")
        counted = merged.iterate(tell, tables, name=f"told {name}")
        self.worker.network.stages["output"] += [merged, counted]
        counted.sink(lambda second, count: told(second, np.asarray(count)))

    def digests(self, minutes: int) -> Iterator[tuple[int, Digests]]:
        """Expressways, and what their originals' digests would be, by minute and kind."""
        worker = self.worker
        assert worker.done is not None
        for c, copy in enumerate(worker.copies):
            sums = worker.done.state(self._balances[c])["sums"]
            asked = _by_minute(sums, minutes, len(worker.feeds))
            for place, feed in enumerate(worker.feeds):
                sums = worker.done.state(self._digests[place][c])["sums"]
                found = _by_minute(sums, minutes, KINDS)
                found[:, BALANCE] = asked[:, place]
                yield copy.xway_by + feed.number, unshifted(found, copy.vid_by, copy.qid_by)

    @property
    def unanswerable(self) -> int:
        """Travel times without a history to answer from."""
        done = self.worker.done
        assert done is not None
        return sum(
            int(done.state(digest)["unanswerable"][0])
            for digests in self._digests
            for digest in digests
        )


def _by_minute(sums: NDArray[np.int64], minutes: int, width: int) -> NDArray[np.int64]:
    """A kernel's sums as (minute, width, 4), as many minutes as wanted."""
    found = np.zeros((minutes, width, DIGEST_WIDTH), np.int64)
    known = sums[: found.size]
    found.reshape(-1)[: len(known)] = known
    return found
