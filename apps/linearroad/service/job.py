"""`xstream linearroad serve`: one query per driver, one driver at a time."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xstream as xs
from linearroad.output.summary import RunOptions
from linearroad.road_view import show_road
from linearroad.rowforms import PAPER, THESIS
from linearroad.rules import DEFAULT_TARIFF, Tariff, rules_named
from linearroad.run.copies import ORIGINAL, copies_of
from linearroad.run.engine import Engine, connect_writer
from linearroad.service.capacity import RoomyState
from linearroad.service.door import Door, dismiss
from linearroad.service.feed import DriverFeed
from linearroad.service.recent import RecentAnswers
from linearroad.tables.history import History
from linearroad.wire import wire_named
from linearroad.wire.connection import (
    STALL_S,
    Connection,
    Cut,
    WireError,
    address,
    check_stall,
)
from linearroad.wire.format import Wire
from xstream.console.stop import Stop, interruptible
from xstream.errors import InputError

__all__ = ["ServeOptions", "Served", "history_of_copies", "serve"]

STOPPED = "the service was stopped"
LINGER_S = 5.0  # how long a driver may take to close after the last answers


@dataclass(frozen=True)
class ServeOptions:
    """How to serve; see `xstream linearroad serve --help`."""

    listen: str = "127.0.0.1:0"
    wire: str = "flat"
    rules: str = "paper"
    threads: int = 1
    memory: str = "refcount-lazy"
    once: bool = False  # end after one driver
    expressways: float | None = None  # for which there is room from the start
    tariff: Tariff = DEFAULT_TARIFF  # of the thesis' rules
    stall_s: float = STALL_S
    checkpoints: Path | None = None  # the folder for checkpoints; None: none are taken
    checkpoint_s: float = 10.0
    resume: bool = False  # use the checkpoints of an earlier service


@dataclass
class Served:
    """What one driver sent and got."""

    rows: int = 0
    rejects: str = ""
    answers: int = 0
    seconds: float = 0.0
    #: What went wrong; None if the driver ended its stream.
    error: str | None = None

    def sentence(self, name: str) -> str:
        """In words, for the log."""
        told = f"{name}: {self.rows:,} rows, {self.answers:,} answers in {self.seconds:.1f} s"
        if self.rejects:
            told += f", rejected {self.rejects}"
        return told if self.error is None else f"{told}; ended early: {self.error}"


def history_of_copies(history: History, directory: Path, expressways: float) -> History:
    """The history for copies of generated expressways, as `drive --expressways` sends them."""
    tolls, sums, vids_by = {}, {}, {}
    for copy in copies_of(directory, expressways):
        own = history.copied(copy.xway_by, copy.vid_by)
        tolls.update(own.tolls)
        sums.update(own.sums)
        vids_by.update(own.vids_by)
    return History(tolls, sums, history.knows_segments, history.unverified, vids_by)


def serve(
    options: ServeOptions, history: History, say: Callable[[str], None], stop: Stop | None = None,
    on_ready: Callable[[str], None] = lambda address: None, live: xs.Live | None = None,
) -> list[Served]:  # fmt: skip
    """Serve drivers until `stop` is set, or one driver with `once`; returns what each got."""
    rules_named(options.rules, options.tariff)
    wire = wire_named(options.wire)
    if (wire.rules == "thesis") != (options.rules == "thesis"):
        raise InputError("--wire thesis and --rules thesis require each other")
    if options.threads < 1:
        raise InputError(f"--threads must be a positive number, not {options.threads}")
    check_stall(options.stall_s)
    if not 0 < options.checkpoint_s < math.inf:
        raise InputError(f"--checkpoint-s must be a positive number, not {options.checkpoint_s:g}")
    door, served = Door(address(options.listen, "--listen"), options.stall_s), list[Served]()
    stop = stop or Stop()
    with closing(door), interruptible(stop):

        def ready() -> None:
            door.open()
            if not served:
                say(f"listening on {door.address}, wire {wire.name}, rules {options.rules}")
            on_ready(door.address)

        goes_on, visitor = options.resume and options.checkpoints is not None, None
        while not stop.is_set():
            query = _Query(door, wire, options, history, stop, ready)
            if live is not None:
                show_road(live, query.engine)
            query.feed.first = visitor
            found = query.run(say, goes_on and visitor is None)
            visitor = query.feed.left
            cut = found is not None and found.error is not None
            goes_on = cut and options.checkpoints is not None
            if found is not None:
                served.append(found)
                if options.once and not goes_on:
                    break
        if visitor is not None:
            dismiss(visitor.connection, STOPPED)
    return served


class _Query:
    """The query that answers one driver."""

    def __init__(
        self, door: Door, wire: Wire, options: ServeOptions, history: History, stop: Stop,
        ready: Callable[[], None],
    ) -> None:  # fmt: skip
        self._door, self._wire, self._stop = door, wire, stop
        manager = xs.memory_manager(options.memory)
        form = THESIS if options.rules == "thesis" else PAPER
        self.feed = DriverFeed(door, wire, manager, stop, ready, form)
        self._settings = RunOptions(
            options.rules, memory=options.memory, threads=options.threads, tariff=options.tariff,
            checkpoint_s=options.checkpoint_s,
        )  # fmt: skip
        self.engine = Engine([self.feed], [ORIGINAL], history, self._settings)
        self.engine.checkpoints = options.checkpoints
        self.feed.suspends = options.checkpoints is not None
        # Room that is not in use yet would be a part of every checkpoint.
        roomy = options.expressways is not None and options.rules == "paper"
        roomy = roomy and options.checkpoints is None
        self._state = (
            RoomyState(self.engine, math.ceil(options.expressways or 0)) if roomy else None
        )
        self._encode = wire.answer_encoder()
        none = wire.no_answers()
        columns = (none.kind, none.time, none.who, none.value, none.amount)
        list(wire.answer_encoder()(*columns))  # compiled before the first answers
        connect_writer(self.engine, self._take, 1)
        self.served = Served()
        self._answers = RecentAnswers(keeps=options.checkpoints is not None)
        self.feed.answers, self.feed.send_again = self._answers, self._send_again

    def save_state(self) -> dict[str, Any]:
        """The answers; the computer at the other end of the connection has confirmed all."""
        if self.feed.connection is not None:
            self.feed.connection.flush()
        return self._answers.save_state()

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on behind these answers."""
        self._answers.load_state(saved)

    def _take(self, upto: int, *columns: xs.SigSeg) -> None:
        """Send the answers of complete seconds."""
        connection = self.feed.connection
        if connection is None:  # the query of a checkpoint ends without a driver
            return
        arrays = tuple(np.asarray(column) for column in columns)
        self._answers.add(arrays, self._send(connection, arrays))

    def _send_again(self, connection: Connection, number: int) -> None:
        """Send the answers behind the first `number` once more."""
        for columns in self._answers.behind(number):
            self._send(connection, columns)

    def _send(self, connection: Connection, arrays: tuple[NDArray[Any], ...]) -> int:
        before = connection.bytes_out
        for buffer in self._encode(*arrays):
            connection.send(buffer)
        return connection.bytes_out - before

    def run(self, say: Callable[[str], None], goes_on: bool) -> Served | None:
        """Answer the next driver; None if it is left to another query, or none came.

        `goes_on`: from the last checkpoint, if there is one.
        """
        cut, began = threading.Event(), 0.0
        self.engine.options = replace(self._settings, resume=goes_on)

        def stopped() -> bool:
            return self._stop.at_once or (self._stop.is_set() and self.feed.suspends)

        def look(_: xs.Run) -> None:
            nonlocal began
            if stopped():
                cut.set()
            if self.feed.connection is not None:
                began = began or time.perf_counter()
                self.feed.connection.stopped = stopped

        try:
            with _collections_off():
                self.engine.run(cut, self._state, look)
            self._end()
        except (xs.OperatorError, InputError) as error:
            within = error.__cause__  # without the name of the operator that met it
            cause = within if isinstance(within, InputError) else error
            if not isinstance(cause, InputError):
                raise
            if self.feed.connection is None:  # not an error of a driver
                raise cause from None
            self._fail(cause)
        finally:
            if self.feed.connection is not None:
                self.feed.connection.close()
                self._door.release()
        if self.feed.connection is None:
            return None
        self.served.rows, self.served.rejects = self.feed.rows, self.feed.count.sentence()
        self.served.answers = self._answers.sent
        self.served.seconds = time.perf_counter() - began if began else 0.0
        say(self.served.sentence(self.feed.connection.name))
        return self.served

    def _end(self) -> None:
        """Mark the end of the answers and wait until the driver closes."""
        connection = self.feed.connection
        if connection is None:
            return
        if self._stop.is_set():
            # A driver can go on after a cut, when the service is there again.
            raise Cut(STOPPED) if self.feed.suspends else WireError(STOPPED)
        connection.send(self._wire.last_answers())
        connection.end_sending()
        until, dropped = time.perf_counter() + LINGER_S, memoryview(bytearray(1 << 12))
        while time.perf_counter() < until and connection.receive(dropped) != 0:
            pass

    def _fail(self, error: InputError) -> None:
        self.served.error = str(error)
        if self.feed.connection is not None and not isinstance(error, Cut):
            dismiss(self.feed.connection, str(error))


@contextmanager
def _collections_off() -> Iterator[None]:
    """Exclude loaded and compiled objects from garbage collections."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
