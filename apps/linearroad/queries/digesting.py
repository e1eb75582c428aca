"""Answers that are counted and digested where they arise, and go nowhere.

Nothing has to be handed over: a worker has all files of the copies that it works on, and a vehicle
never leaves its copy, so that each copy has accounts of its own in the worker's engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.queries.comparing import Digests, unshifted
from linearroad.queries.copying import Copy
from linearroad.queries.feeding import FOR_EVER, RowFeed
from linearroad.queries.history import History
from linearroad.queries.operators.accounts import accounts_of_files
from linearroad.queries.operators.digests import (
    DIGEST_WIDTH,
    KINDS,
    digest_answers,
    digest_balances,
    tell,
)
from linearroad.queries.sharding import Worker
from linearroad.queries.summary import RunOptions

__all__ = ["DigestingWorker"]

BALANCE = 2  # the kind of answers that accounts give
ANSWERS = ("time", "toll_vid", "toll_lav", "toll", "alert_vid", "alert_seg")

#: Called with a second and how many answers of each kind have been given since the last call.
Told = Callable[[int, NDArray[np.int64]], None]


class DigestingWorker(Worker):
    """Answers everything about its copies, accounts included."""

    def __init__(
        self, feeds: list[RowFeed], copies: list[Copy], history: History, options: RunOptions,
        told: Told, state: Mapping[str, xs.KernelState] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(feeds, copies, history, options)
        self._told, self._state = told, state
        self.error: BaseException | None = None
        money = [self._add(feed) for feed in feeds]
        self._settle(list(zip(*money, strict=True)))

    def _add(self, feed: RowFeed) -> list[xs.Stream]:
        """A file's parts up to their digests; charges and requests of each."""
        answered, money = [], []
        for part in self.parts(feed):
            shard, name = part.shard, f" {part.number}"
            answers = shard.notifications.select(*ANSWERS, name=f"answers{name}").zip(
                shard.requests.select("last", name=f"last{name}"),
                *part.looked_up(),
                name=f"answers of a second{name}",
            )
            answered.append(answers.iterate(digest_answers, name=f"digest{name}"))
            asked = shard.requests.select("time", "request", name=f"requests for accounts{name}")
            money.append(asked.zip(shard.charges, name=f"requests and charges{name}"))
        self._count(answered, str(feed.number))
        return money

    def _settle(self, money: list[tuple[xs.Stream, ...]]) -> None:
        """Accounts for each copy, over all of its files."""
        ticks = self.query.source(
            xs.io.iterable(self._ticks, out=money[0][0].schema), name="ticks"
        )  # last among the sources: asked when all files have been
        answered = []
        for copy, streams in zip(self.copies, money, strict=True):
            name, files = f" {copy.xway_by}", len(streams)
            balances = (
                streams[0]
                .union(*streams[1:], ticks, name=f"money{name}")
                .iterate(accounts_of_files, files, name=f"accounts{name}")
            )
            answered.append(
                balances.iterate(digest_balances, files, name=f"digest of balances{name}")
            )
        self._count(answered, "of balances")

    def _count(self, answered: list[xs.Stream], name: str) -> None:
        copies = answered[0].union(*answered[1:], name=f"all copies {name}")
        told = copies.iterate(tell, len(answered), name=f"told {name}")
        told.sink(lambda second, many: self._told(second, np.asarray(many)))

    def _ticks(self) -> Iterator[tuple[Any, ...]]:
        """Up to which second all files have been told, whenever that changes."""
        nothing = [xs.SigSeg(np.empty(0, dtype)) for dtype in ("int32", "int32", "int64")]
        while (told := self.feeds[0].convoy.told) < FOR_EVER:
            yield (told, *nothing)
            if self.feeds[0].clock.stop.is_set():
                return
        yield (told, *nothing)

    def run(self) -> None:
        """The worker's engine, to its end."""
        try:
            self.execute(self._state)
        except BaseException as error:
            self.error = error
            self.feeds[0].clock.give_up()
        self._state = None

    def digests(self, minutes: int) -> Iterator[tuple[int, Digests]]:
        """Expressways, and what their originals' digests would be, by minute and kind."""
        assert self.done is not None
        files = [feed.number for feed in self.feeds]
        for copy in self.copies:
            balances = self.done.state(f"digest of balances {copy.xway_by}")["sums"]
            asked = _by_minute(balances, minutes, len(files))
            for place, file in enumerate(files):
                sums = self.done.state(f"digest {copy.xway_by + file}")["sums"]
                found = _by_minute(sums, minutes, KINDS)
                found[:, BALANCE] = asked[:, place]
                yield copy.xway_by + file, unshifted(found, copy.vid_by, copy.qid_by)

    @property
    def unanswerable(self) -> int:
        """Travel times without a history to answer from."""
        assert self.done is not None
        return sum(
            int(self.done.state(f"digest {copy.xway_by + feed.number}")["unanswerable"][0])
            for copy in self.copies
            for feed in self.feeds
        )


def _by_minute(sums: NDArray[np.int64], minutes: int, width: int) -> NDArray[np.int64]:
    """A kernel's sums as (minute, width, 4), as many minutes as wanted."""
    found = np.zeros((minutes, width, DIGEST_WIDTH), np.int64)
    known = sums[: found.size]
    found.reshape(-1)[: len(known)] = known
    return found
