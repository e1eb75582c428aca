"""`xstream linearroad drive`: connects to a system, sends the stream, and judges the times."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

from linearroad.driver.receiver import AnswerDigests, AnswerFile, Keeper, Receiver
from linearroad.driver.results import DriveOptions, DriveResult, write_summary
from linearroad.driver.sender import Sender
from linearroad.driver.traffic import Second, seconds
from linearroad.generation.manifest import read_manifest
from linearroad.input import RowReader, length_s, open_input, unverified
from linearroad.output.digests import differences, write_digests
from linearroad.output.sink import limits_of
from linearroad.output.writers import RESULTS, RejectWriter
from linearroad.run.copies import Copy, copies_of
from linearroad.wire import wire_named
from linearroad.wire.connection import Connection, WireError, address
from linearroad.wire.format import Wire
from xstream.console.folder import result_folder
from xstream.console.stop import Stop, interruptible
from xstream.console.timeline import Timeline, attributed, read_timeline
from xstream.errors import InputError
from xstream.io.clock import Clock, StreamTime
from xstream.io.page_checksums import unverified_sentence
from xstream.io.schedule import NO_LIMIT

__all__ = ["drive"]

SLOWEST, FASTEST = 0.001, 1e6
MOST_MINUTES = 2**31 // 60
MOST_DIGEST_MINUTES = 7 * 24 * 60
AGAIN_S = 0.2  # between two attempts to connect

Look = Callable[[DriveResult], None]


def drive(
    source: Path, to: str, out: Path, options: DriveOptions, progress: Look | None = None,
    clock: Clock | None = None,
) -> DriveResult:  # fmt: skip
    """Send the rows of an input to a system, take its answers, and write the results to `out`."""
    wire = wire_named(options.wire)
    _check(options)
    place = address(to, "--to")
    copies = copies_of(source, options.expressways)
    readers = open_input(source, wire.rules)
    stream = StreamTime(options.speed, clock=clock)
    try:
        with result_folder(out, source, RESULTS):
            rejects = RejectWriter(out / "rejects.csv", several_files=True)
            for reader in readers:
                reader.on_reject = partial(rejects.write, file_name=reader.name)
            with closing(rejects):
                rows = _checked(source, readers, options)
                keeper = _keeper(source, out, wire, copies, options)
                with closing(keeper), _connected(place, options) as connection:
                    drive = _Drive(connection, wire, stream, copies, keeper, rejects, options)
                    with closing(Timeline(out / "timeline.csv", stream.wall_s)) as log:
                        drive.run(rows, log, progress)
            result = drive.result
            _conclude(result, rejects, readers, keeper, out)
            worst, delay_s = drive.receiver.delays.worst
            if worst >= 0:
                result.longest = attributed(read_timeline(out / "timeline.csv"), worst, delay_s)
            write_summary(out / "summary.json", result, options, len(readers))
            return result
    except OSError as error:  # of writing; errors of reading are converted where they occur
        raise InputError(f"{out} cannot be written: {error.strerror}") from error


def _check(options: DriveOptions) -> None:
    if not SLOWEST <= options.speed <= FASTEST:
        raise InputError(f"--speed must be from {SLOWEST} to {FASTEST:,.0f}, not {options.speed:g}")
    if options.minutes is not None and not 1 <= options.minutes <= MOST_MINUTES:
        raise InputError(f"--minutes must be from 1 to {MOST_MINUTES:,}, not {options.minutes:,}")
    if options.answers not in ("write", "digest"):
        raise InputError(f"--answers must be write or digest, not {options.answers!r}")
    if options.answers == "digest" and options.wire == "thesis":
        raise InputError("--answers digest requires answers with times, which --wire thesis lacks")


def _checked(source: Path, readers: Sequence[RowReader], options: DriveOptions) -> Iterator[Second]:
    """The seconds of the input, the first of them read; raises InputError if there is none."""
    limit_s = NO_LIMIT if options.minutes is None else 60 * options.minutes
    found = seconds(readers, limit_s)
    first = next(found, None)
    if first is None:
        within = "" if options.minutes is None else f" in its first {options.minutes:,} minutes"
        raise InputError(f"{source} has no rows{within}")
    return chain((first,), found)


@contextmanager
def _connected(place: tuple[str, int], options: DriveOptions) -> Iterator[Connection]:
    """A connection to the system, which may take a while until it listens."""
    told = f"{place[0]}:{place[1]}"
    until = time.perf_counter() + options.wait_s
    while True:
        try:
            sock = socket.create_connection(place, timeout=max(options.wait_s, 5.0))
            break
        except OSError as error:
            if time.perf_counter() >= until or isinstance(error, socket.gaierror):
                reason = error.strerror or error
                raise InputError(f"no connection to {told}: {reason}") from error
            time.sleep(AGAIN_S)
    with closing(Connection(sock, f"the system at {told}", options.stall_s)) as connection:
        yield connection


def _keeper(
    source: Path, out: Path, wire: Wire, copies: Sequence[Copy], options: DriveOptions
) -> Keeper:
    if options.answers == "write":
        return AnswerFile(out / "output.csv", wire)
    if not source.is_dir():
        raise InputError(f"--answers digest requires a generated directory, and {source} is a file")
    totals = read_manifest(source)["totals"]
    length = length_s(source, options.minutes)
    minutes = MOST_DIGEST_MINUTES if length is None else -(-length // 60)
    return AnswerDigests(len(copies), minutes, int(totals["vehicles"]), int(totals["queries"]))


class _Drive:
    """A stream on its way: the sender, the receiver, and what is known of both."""

    def __init__(
        self, connection: Connection, wire: Wire, stream: StreamTime, copies: Sequence[Copy],
        keeper: Keeper, rejects: RejectWriter, options: DriveOptions,
    ) -> None:  # fmt: skip
        marks = wire.marks if options.marks is None else options.marks
        self.connection, self.stream, self.options = connection, stream, options
        self.wire = wire
        self.sender = Sender(connection, wire, stream, copies, marks)
        self.receiver = Receiver(connection, wire, stream, keeper, rejects)
        if self.receiver.due is not None:
            self.sender.before = self.receiver.due.note
        self.result, self.stop = DriveResult(), Stop()
        connection.stopped = lambda: self.receiver.done.is_set() or self.stop.at_once

    def run(self, rows: Iterator[Second], log: Timeline, progress: Look | None) -> None:
        """Send all rows and take all answers."""
        first = next(rows)
        self.sender.warm_up(first.rows)
        self.receiver.start()

        def look(last: bool = False) -> None:
            self._update()
            known = self.result
            log.note(known.stream_seconds, known.lag_s, known.rows, sum(known.answers.values()),
                     last)  # fmt: skip
            if progress is not None:
                progress(known)

        with interruptible(self.stop):
            try:
                self.stream.start()
                everything = chain((first,), rows)
                ended = self.receiver.done.is_set
                complete = self.sender.run(everything, self.stop, ended, look)
                self._await_answers(complete, look)
            except WireError as error:
                self.receiver.done.wait(1.0)  # what the system says about it explains more
                self.result.ended = str(self.receiver.error or error)
            finally:
                self.receiver.stop()
        look(last=True)
        self.result.wall_seconds = self.stream.wall_s()
        self.result.response_s = self.receiver.delays.by_kind()

    def _await_answers(self, complete: bool, look: Callable[[], None]) -> None:
        result, receiver = self.result, self.receiver
        if not complete and receiver.done.is_set():
            told = f"{self.connection.name} ended before the last rows"
            result.ended = str(receiver.error or told)
            return
        result.interrupted = result.interrupted_by_user = self.stop.is_set()
        self.sender.end()
        longest_s = max(limits_of(self.wire.rules).values()) / self.options.speed
        quiet_s = max(longest_s, self.options.quiet_s)
        receiver.wait(quiet_s, lambda: self.stop.times_asked > 1, look)
        if receiver.error is not None:
            result.ended = str(receiver.error)
        elif not sum(receiver.counts.values()) and not self.stop.is_set():
            result.ended = f"{self.connection.name} sent no answer"
        elif not receiver.done.is_set() and not self.stop.is_set():
            result.warnings.append(
                f"{self.connection.name} did not end the connection within {quiet_s:.0f} s of its "
                "last answer"
            )

    def _update(self) -> None:
        sent, receiver, result = self.sender.progress, self.receiver, self.result
        result.rows, result.reports = sent.rows, sent.reports
        result.requests = sent.rows - sent.reports
        result.stream_seconds, result.idle_s = sent.second, sent.idle_s
        result.lag_s, result.worst_lag_s = sent.lag_s, sent.worst_lag_s
        result.blocked_s, result.driver_s = self.connection.blocked_s, sent.own_s
        result.fell_behind = sent.sentence(self.options.speed)
        result.answers = dict(receiver.counts)
        result.early_answers, result.unknown_answers = receiver.early, receiver.unknown
        result.malformed_answers = receiver.malformed
        result.bytes_sent = self.connection.bytes_out
        result.bytes_received = self.connection.bytes_in
        late = receiver.delays.first_late
        result.first_late = None if late is None else late.sentence()


def _conclude(
    result: DriveResult, rejects: RejectWriter, readers: Sequence[RowReader], keeper: Keeper,
    out: Path,
) -> None:  # fmt: skip
    """Complete the result: rejects, warnings and digests."""
    result.rejects = dict(sorted(rejects.by_reason.items()))
    if (disorder := rejects.disorder_sentence()) is not None:
        result.warnings.append(disorder)
    if unchecked := unverified(list(readers)):
        result.warnings.append(unverified_sentence(unchecked))
    if result.early_answers:
        result.warnings.append(f"{result.early_answers:,} answers came before their rows were due")
    if isinstance(keeper, AnswerDigests):
        write_digests(out / "digests.parquet", keeper.digests)
        if keeper.others:
            result.warnings.append(f"{keeper.others:,} answers belong to no vehicle or request")
        if not result.interrupted and result.ended is None:
            wrong, first = differences(keeper.digests, keeper.digests[:1])
            result.copies_differ = wrong
            result.first_differences = [difference.sentence() for difference in first]
