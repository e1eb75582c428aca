"""Takes the answers of a system: stamps, counts and keeps them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from linearroad.driver._kernels import add_digests, count_seconds
from linearroad.driver.due_times import DueTimes
from linearroad.input import Reject
from linearroad.operators.digests import DIGEST_WIDTH
from linearroad.output.digests import Digests
from linearroad.output.sink import TYPES, limits_of
from linearroad.output.writers import RejectWriter, WholeLines
from linearroad.schema import KINDS
from linearroad.wire.connection import Connection
from linearroad.wire.format import Answers, Wire, empty_block
from xstream.errors import XStreamError
from xstream.io.clock import StreamTime
from xstream.io.response_times import ResponseTimes

__all__ = ["AnswerDigests", "AnswerFile", "Receiver"]

SPAN_S = 256  # seconds before an arrival whose answers are counted together
WRITTEN_AT_ONCE = 1 << 20  # bytes
MOST_KEPT = 10_000  # malformed answers in `rejects.csv`


class Keeper(Protocol):
    """Keeps answers."""

    def keep(self, answers: Answers, arrival_ms: int) -> None:
        """Keep answers that arrived together."""

    def close(self) -> None:
        """Complete what is kept."""


class AnswerFile:
    """`output.csv`: a line per answer, in the order of arrival."""

    def __init__(self, path: Path, wire: Wire) -> None:
        self._lines, self._wire = WholeLines(path), wire
        self._waiting = bytearray()

    def keep(self, answers: Answers, arrival_ms: int) -> None:
        """Write lines."""
        self._waiting += self._wire.lines(answers, arrival_ms).data
        if len(self._waiting) > WRITTEN_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        lines, self._waiting = self._waiting, bytearray()
        self._lines.write(memoryview(lines))

    def close(self) -> None:
        """Flush and close the file."""
        try:
            self._flush()
        finally:
            self._lines.file.close()


class AnswerDigests:
    """Digests by copy of the input, minute and kind, which do not depend on the order."""

    def __init__(self, copies: int, minutes: int, vids: int, qids: int) -> None:
        self._sums = np.zeros((copies, minutes, KINDS, DIGEST_WIDTH), np.int64)
        self._vids, self._qids = vids, qids
        #: Answers that belong to no copy and minute of the input.
        self.others = 0

    def keep(self, answers: Answers, arrival_ms: int) -> None:
        """Add answers to the digests."""
        self.others += add_digests(
            answers.kind, answers.time, answers.who, answers.value, answers.amount,
            self._vids, self._qids, self._sums,
        )  # fmt: skip

    @property
    def digests(self) -> Digests:
        """What has been added up."""
        return self._sums.view(np.uint64)

    def close(self) -> None:
        """Do nothing."""


class Receiver:
    """Receives answers in a thread of its own until the system ends."""

    def __init__(
        self, connection: Connection, wire: Wire, stream: StreamTime, keeper: Keeper,
        rejects: RejectWriter,
    ) -> None:  # fmt: skip
        self._connection, self._wire, self._stream = connection, wire, stream
        self._keeper, self._rejects = keeper, rejects
        self.delays = ResponseTimes(limits_of(wire.rules))
        self.counts = dict.fromkeys(TYPES, 0)
        #: Answers before their rows were due, of no known row, and frames that are no answers.
        self.early = self.unknown = self.malformed = 0
        #: What the system did wrong, or why answers cannot be kept; complete when `done` is set.
        self.error: BaseException | None = None
        self.full: BaseException | None = None
        self.done = threading.Event()
        self.latest_at = time.perf_counter()
        self.due = DueTimes() if wire.name == "thesis" else None
        #: Answers that came again after the connection was cut, and those that will.
        self.repeated = self._repeats = 0
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)

    @property
    def received(self) -> int:
        """The number of answers so far, malformed ones included."""
        return sum(self.counts.values()) + self.malformed

    def start(self) -> None:
        """Compile what takes answers, and start to receive."""
        none = self._wire.no_answers()
        self._keeper.keep(none, 0)
        self._time(none, none.time, 0)
        if self.due is not None:
            self.due.note(empty_block())
            self.due.seconds(none.kind, none.who)
        self._thread.start()

    def go_on(self, connection: Connection, repeats: int) -> None:
        """Receive from another connection, whose first answers are there already."""
        self._thread.join()
        self._connection, self._repeats, self.error = connection, repeats, None
        self.done.clear()
        self.latest_at = time.perf_counter()
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop at once."""
        self._stop = True
        self._thread.join()

    def _run(self) -> None:
        try:
            for answers in self._wire.answers(self._connection):
                if self._stop:
                    return
                if answers is not None:
                    arrival_ms = int(1000 * self._stream.now_s())
                    try:
                        self._take(self._new(answers), arrival_ms)
                    except (XStreamError, OSError) as error:
                        self.full = error
                        raise
        except (XStreamError, OSError) as error:
            self.error = error
        finally:
            self.done.set()

    def _new(self, answers: Answers) -> Answers:
        """The answers that have not come before."""
        repeats = min(self._repeats, len(answers))
        self._repeats -= repeats
        self.repeated += repeats
        return answers.behind(repeats) if repeats else answers

    def _take(self, answers: Answers, arrival_ms: int) -> None:
        self.latest_at = time.perf_counter()
        for text in answers.malformed:
            self.malformed += 1
            if self.malformed <= MOST_KEPT:
                number = sum(self.counts.values()) + self.malformed
                self._rejects.write(Reject(number, "not an answer", text), "answers")
        if not len(answers):
            return
        self._keeper.keep(answers, arrival_ms)
        for name, count in zip(TYPES, np.bincount(answers.kind, minlength=KINDS), strict=True):
            self.counts[name] += int(count)
        times = answers.time
        if self.due is not None:
            times = self.due.seconds(answers.kind, answers.who)
        self._time(answers, times, arrival_ms)

    def _time(self, answers: Answers, times: np.ndarray, arrival_ms: int) -> None:
        """Note response times; answers of one second and kind that arrive together are equal."""
        first = max(arrival_ms // 1000 + 1 - SPAN_S, 0)
        counts = np.zeros((KINDS, SPAN_S), np.int64)
        if count_seconds(answers.kind, times, first, counts):
            self._time_others(answers, times, arrival_ms, first)
        for kind, place in np.argwhere(counts).tolist():
            second = first + place
            self.delays.note_many(kind, second, arrival_ms - 1000 * second,
                                  int(counts[kind, place]))  # fmt: skip

    def _time_others(
        self, answers: Answers, times: np.ndarray, arrival_ms: int, first: int
    ) -> None:  # fmt: skip
        """Answers to old rows, or to rows that are not due yet or unknown."""
        seconds = times.astype(np.int64)
        self.early += int((1000 * seconds > arrival_ms).sum())
        self.unknown += int((seconds < 0).sum())
        old = (seconds >= 0) & (seconds < first)
        for kind in range(KINDS):
            here = old & (answers.kind == kind)
            self.delays.note(kind, seconds[here], arrival_ms - 1000 * seconds[here])

    def wait(self, quiet_s: float, stopped: Callable[[], bool], look: Callable[[], None]) -> None:
        """Wait for the last answers: until the system ends, or sends nothing for `quiet_s`."""
        began = time.perf_counter()
        while not self.done.wait(0.1) and not stopped():
            look()
            if time.perf_counter() - max(began, self.latest_at) > quiet_s:
                return
