"""The query of a run: all files, all copies of them, and the sinks of their answers.

Written answers are ordered by time. Digested answers are counted and digested where they are
computed, and not written. Copies and files share no state except for the accounts of a copy, so
they are distributed over several threads (`RunOptions.threads`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.network import Network, Part
from linearroad.operators.answers import TABLE, batch
from linearroad.operators.digests import (
    DIGEST_WIDTH,
    answer_counts,
    digest_answers,
    digest_balances,
)
from linearroad.output.digests import Digests, unshifted
from linearroad.output.summary import RunOptions
from linearroad.rules import rules_named
from linearroad.run.copies import ORIGINAL, Copy
from linearroad.run.feed import RAW, Feed
from linearroad.schema import KINDS
from linearroad.tables.history import History

__all__ = ["DigestOutput", "Engine", "connect_writer"]

#: Chunks of a file that are in flight at a time; few, so that they stay in the cache.
BURST = 1
_SAMPLES = xs.Snapshot.COLUMNS.index("samples")


class Engine:
    """A query over files and copies of them; each copy of a file is a part."""

    def __init__(
        self, feeds: list[Feed], copies: list[Copy], history: History, options: RunOptions
    ) -> None:
        self.feeds, self.copies, self.options = feeds, copies, options
        self.network = Network(xs.Query("linear road"), rules_named(options.rules, options.tariff))
        histories = [history.copied(copy.xway_by, copy.vid_by) for copy in copies]
        #: By file and copy.
        self.parts = [self._parts(feed, histories) for feed in feeds]
        #: By copy, once they are declared.
        self.accounts: list[xs.Stream] = []
        self.done: xs.Run | None = None
        #: The folder for checkpoints, if they are taken.
        self.checkpoints: Path | None = None
        #: What shows the run while it is under way.
        self.live: xs.Live | None = None

    def _parts(self, feed: Feed, histories: list[History]) -> list[Part]:
        name = f" {feed.number}"
        rows = self.network.query.source(
            xs.io.iterable(feed.tuples, out=RAW), name=f"rows{name}"
        )  # fmt: skip
        seconds = self.network.seconds(rows, name, feed.reader.form.number)
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
        """Copies, and the parts of each; its vehicles may use several of them."""
        return zip(self.copies, map(list, zip(*self.parts, strict=True)), strict=True)

    def balances(self) -> list[xs.Stream]:
        """Declare the accounts of each copy; they need all of its files."""
        self.accounts = [
            self.network.balances([part.money for part in parts], f" {copy.xway_by}")
            for copy, parts in self.groups()
        ]
        return self.accounts

    @property
    def rows(self) -> int:
        """The number of rows passed to the query, including copies."""
        return len(self.copies) * sum(feed.rows for feed in self.feeds)

    @property
    def reports(self) -> int:
        """The number of reports used; repeated reports are rejected before."""
        assert self.done is not None
        counted = self.done.snapshot().counters[:, _SAMPLES]
        parts = (part for parts in self.parts for part in parts)
        return sum(int(counted[part.kept["segment statistics"].node]) for part in parts)

    def run(
        self, cut: threading.Event, state: Any = None,
        progress: Callable[[xs.Run], None] | None = None,
    ) -> None:  # fmt: skip
        """Run to the end of the files, or until `cut` is set."""
        self.done = self.network.query.run(
            self.options.scheduler, self.feeds[0].manager, BURST, stop=cut, state=state,
            progress=progress or False, threads=self.options.threads,
            checkpoint=self.checkpoints, checkpoint_s=self.options.checkpoint_s or 10.0,
            resume=self.options.resume, live=self.live or False,
        )  # fmt: skip


#: Called with a second and a batch of answers up to it: kind, time, who, value, amount.
Take = Callable[..., None]


def connect_writer(engine: Engine, take: Take, at_least: int) -> None:
    """Order the answers by time and pass them to `take`, at least `at_least` rows at a time."""
    tables = [table for parts in engine.parts for part in parts for table in part.tables]
    answers = [table.select(*TABLE) for table in (*tables, *engine.balances())]
    merged = answers[0].merge(*answers[1:], by="time", name="answers by time")
    batches = merged.iterate(batch, len(answers), at_least, name="answers")
    engine.network.stages["output"] += [*answers, merged, batches]
    batches.sink(take, name="output")


#: Called with a second and the number of answers of each kind since the last call. It belongs to an
#: object that checkpoints can save.
TakeCounts = Callable[[int, xs.SigSeg], None]


class DigestOutput:
    """Counts and digests answers where they are computed."""

    def __init__(self, engine: Engine, take: TakeCounts) -> None:
        self.engine = engine
        self._digests = [
            [self._digest(part, copy) for part, copy in zip(parts, engine.copies, strict=True)]
            for parts in engine.parts
        ]  # by file and copy
        for feed, digests in zip(engine.feeds, self._digests, strict=True):
            tables = len(digests) * len(engine.parts[0][0].tables)
            self._count(digests, tables, str(feed.number), take)
        self._balances = [
            balances.iterate(
                digest_balances, len(engine.feeds), name=f"digest of balances {copy.xway_by}"
            )
            for copy, balances in zip(engine.copies, engine.balances(), strict=True)
        ]
        self._count(self._balances, len(self._balances), "of balances", take)

    def _digest(self, part: Part, copy: Copy) -> xs.Stream:
        answers = part.tables[0].merge(*part.tables[1:], name=f"answers {part.number}")
        shift = copy.xway_by if self.engine.options.rules == "thesis" else 0
        digest = answers.iterate(digest_answers, shift, name=f"digest {part.number}")
        self.engine.network.stages["output"] += [answers, digest]
        return digest

    def _count(self, digests: list[xs.Stream], tables: int, name: str, take: TakeCounts) -> None:
        merged = digests[0].merge(*digests[1:], name=f"all copies {name}")
        counted = merged.iterate(answer_counts, tables, name=f"counts {name}")
        self.engine.network.stages["output"] += [merged, counted]
        counted.sink(take)

    def digests(self, minutes: int) -> Iterator[tuple[int, Digests]]:
        """Expressways and their digests by minute and kind, without the shift of copies."""
        engine = self.engine
        assert engine.done is not None
        for c, copy in enumerate(engine.copies):
            sums = engine.done.state(self._balances[c])["sums"]
            accounts = _by_minute(sums, minutes, len(engine.feeds) * KINDS)
            for place, feed in enumerate(engine.feeds):
                sums = engine.done.state(self._digests[place][c])["sums"]
                # Each kind of answer comes from one of the two.
                found = _by_minute(sums, minutes, KINDS)
                found += accounts[:, place * KINDS : (place + 1) * KINDS]
                yield copy.xway_by + feed.number, unshifted(found, copy.vid_by, copy.qid_by)

    @property
    def unanswerable(self) -> int:
        """The number of travel-time requests that lack a history."""
        done = self.engine.done
        assert done is not None
        return sum(
            int(done.state(digest)["unanswerable"][0])
            for digests in self._digests
            for digest in digests
        )


def _by_minute(sums: NDArray[np.int64], minutes: int, width: int) -> NDArray[np.int64]:
    """A kernel's sums as (minute, width, 4), for the given number of minutes."""
    found = np.zeros((minutes, width, DIGEST_WIDTH), np.int64)
    known = sums[: found.size]
    found.reshape(-1)[: len(known)] = known
    return found
