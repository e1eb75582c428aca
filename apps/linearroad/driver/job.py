"""`xstream linearroad drive`: connects to a system, sends the stream, and judges the times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from linearroad.driver.line import Line
from linearroad.driver.receiver import AnswerDigests, AnswerFile, Keeper, Receiver
from linearroad.driver.results import DriveOptions, DriveResult, write_summary
from linearroad.driver.rows import InputRows
from linearroad.driver.sender import Sender
from linearroad.driver.traffic import Second
from linearroad.generation.manifest import read_manifest
from linearroad.input import RowReader, length_s, unverified
from linearroad.output.digests import differences, write_digests
from linearroad.output.sink import limits_of
from linearroad.output.writers import RESULTS, RejectWriter
from linearroad.run.copies import Copy, copies_of
from linearroad.wire import wire_named
from linearroad.wire.connection import Cut, WireError, check_stall
from linearroad.wire.format import Wire
from xstream.console.folder import result_folder
from xstream.console.stop import Stop, interruptible
from xstream.console.timeline import Timeline, attributed, read_timeline
from xstream.errors import InputError
from xstream.io.clock import Clock, StreamTime
from xstream.io.page_checksums import unverified_sentence

__all__ = ["drive"]

SLOWEST, FASTEST = 0.001, 1e6
MOST_MINUTES = 2**31 // 60
MOST_DIGEST_MINUTES = 7 * 24 * 60
LONGEST_WAIT_S = 1e6

Look = Callable[[DriveResult], None]


def drive(
    source: Path, to: str, out: Path, options: DriveOptions, progress: Look | None = None,
    clock: Clock | None = None,
) -> DriveResult:  # fmt: skip
    """Send the rows of an input to a system, take its answers, and write the results to `out`."""
    wire = wire_named(options.wire)
    _check(options)
    line = Line(to, options)
    copies = copies_of(source, options.expressways)
    rows = InputRows(source, wire.rules, options)
    stream = StreamTime(options.speed, clock=clock)
    try:
        with result_folder(out, source, RESULTS):
            rejects = RejectWriter(out / "rejects.csv", several_files=True)
            rows.write_rejects(rejects)
            with closing(rejects):
                first = rows.first()
                keeper = _keeper(source, out, wire, copies, options)
                with closing(keeper), closing(line):
                    drive = _Drive(line, wire, stream, copies, keeper, rejects, options)
                    with closing(Timeline(out / "timeline.csv", stream.wall_s)) as log:
                        drive.run(first, rows, log, progress)
            result = drive.result
            _conclude(result, rejects, rows.readers, keeper, out)
            worst, delay_s = drive.receiver.delays.worst
            if worst >= 0:
                result.longest = attributed(read_timeline(out / "timeline.csv"), worst, delay_s)
            write_summary(out / "summary.json", result, options, len(rows.readers))
            return result
    except OSError as error:  # of writing; errors of reading are converted where they occur
        raise InputError(f"{out} cannot be written: {error.strerror}") from error


def _check(options: DriveOptions) -> None:
    if not SLOWEST <= options.speed <= FASTEST:
        raise InputError(f"--speed must be from {SLOWEST} to {FASTEST:,.0f}, not {options.speed:g}")
    if options.minutes is not None and not 1 <= options.minutes <= MOST_MINUTES:
        raise InputError(f"--minutes must be from 1 to {MOST_MINUTES:,}, not {options.minutes:,}")
    for name, value in (("--wait-s", options.wait_s), ("--reconnect-s", options.reconnect_s)):
        if not 0 <= value <= LONGEST_WAIT_S:
            raise InputError(f"{name} must be from 0 to {LONGEST_WAIT_S:,.0f}, not {value:g}")
    check_stall(options.stall_s)
    if options.answers not in ("write", "digest"):
        raise InputError(f"--answers must be write or digest, not {options.answers!r}")
    if options.answers == "digest" and options.wire == "thesis":
        raise InputError("--answers digest requires answers with times, which --wire thesis lacks")


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
        self, line: Line, wire: Wire, stream: StreamTime, copies: Sequence[Copy],
        keeper: Keeper, rejects: RejectWriter, options: DriveOptions,
    ) -> None:  # fmt: skip
        marks = wire.marks if options.marks is None else options.marks
        self.line, self.stream, self.options = line, stream, options
        self.wire = wire
        connection = line.connect()
        self.sender = Sender(connection, wire, stream, copies, marks)
        self.receiver = Receiver(connection, wire, stream, keeper, rejects)
        if self.receiver.due is not None:
            self.sender.before = self.receiver.due.note
        self.result, self.stop = DriveResult(), Stop()
        connection.stopped = self._stopped

    def _stopped(self) -> bool:
        return self.receiver.done.is_set() or self.stop.at_once

    def run(
        self, rows: Iterator[Second], source: InputRows, log: Timeline, progress: Look | None
    ) -> None:
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
            if self.options.stop_when_late and known.first_late is not None:
                self.stop.set()

        with interruptible(self.stop):
            try:
                self.stream.start()
                following: Iterator[Second] | None = chain((first,), rows)
                while following is not None:
                    self.result.ended = None
                    was_cut = self._exchange(following, look)
                    following = self._following(source, look) if was_cut else None
            finally:
                self.receiver.stop()
        if self.receiver.full is not None:
            raise self.receiver.full
        look(last=True)
        self.result.wall_seconds = self.stream.wall_s()
        self.result.response_s = self.receiver.delays.by_kind()

    def _exchange(self, rows: Iterator[Second], look: Callable[[], None]) -> bool:
        """Send rows and take answers; returns whether the connection was cut before the end."""
        receiver = self.receiver
        try:
            complete = self.sender.run(rows, self.stop, receiver.done.is_set, look)
            if not complete and receiver.done.is_set():
                told = f"{self.line.name} ended before the last rows"
                self.result.ended = str(receiver.error or told)
                return receiver.error is None or isinstance(receiver.error, Cut)
            self._await_answers(look)
            return isinstance(receiver.error, Cut)
        except WireError as error:
            # What the system says about it explains more, and all that came is to be read.
            receiver.done.wait(max(1.0, self.options.reconnect_s))
            self.result.ended = str(receiver.error or error)
            return isinstance(receiver.error or error, Cut)

    def _following(self, source: InputRows, look: Callable[[], None]) -> Iterator[Second] | None:
        """Connect again, if that was asked for; returns the rows to go on with."""
        if not self.options.reconnect_s or self.stop.is_set():
            return None
        began, held = self.stream.wall_s(), self.receiver.received
        try:
            rows, answers = self.line.connect_again(held, self.stop.is_set, look)
            if rows > self.sender.progress.rows or answers > held:
                raise WireError(
                    f"{self.line.name} wants to go on behind row {rows:,} and answer {answers:,}, "
                    f"and only {self.sender.progress.rows:,} rows were sent, and {held:,} answers "
                    "received"
                )
        except InputError as error:
            self.result.ended = f"{self.result.ended}; {error}"
            return None
        connection = self.line.connection
        assert connection is not None
        self.receiver.go_on(connection, held - answers)
        connection.stopped = self._stopped
        self.sender.progress.away_s += self.stream.wall_s() - began
        self.result.reconnections += 1
        return source.again(self.sender.go_on(connection, rows))

    def _await_answers(self, look: Callable[[], None]) -> None:
        result, receiver = self.result, self.receiver
        result.interrupted, result.interrupted_by_user = self.stop.is_set(), self.stop.by_user
        self.sender.end()
        longest_s = max(limits_of(self.wire.rules).values()) / self.options.speed
        quiet_s = max(longest_s, self.options.quiet_s)
        stopped_late = self.options.stop_when_late and result.first_late is not None
        receiver.wait(quiet_s, lambda: stopped_late or self.stop.times_asked > 1, look)
        if receiver.error is not None:
            result.ended = str(receiver.error)
        elif not sum(receiver.counts.values()) and not self.stop.is_set():
            result.ended = f"{self.line.name} sent no answer"
        elif not receiver.done.is_set() and not self.stop.is_set():
            result.warnings.append(
                f"{self.line.name} did not end the connection within {quiet_s:.0f} s of its "
                "last answer"
            )

    def _update(self) -> None:
        sent, receiver, result = self.sender.progress, self.receiver, self.result
        result.rows, result.reports = sent.rows, sent.reports
        result.requests = sent.rows - sent.reports
        result.stream_seconds, result.idle_s = sent.second, sent.idle_s
        result.lag_s, result.worst_lag_s = sent.lag_s, sent.worst_lag_s
        result.blocked_s, result.driver_s = self.line.blocked_s, sent.own_s
        result.fell_behind = sent.sentence(self.options.speed)
        result.answers = dict(receiver.counts)
        result.early_answers, result.unknown_answers = receiver.early, receiver.unknown
        result.malformed_answers = receiver.malformed
        result.away_s, result.repeated_answers = sent.away_s, receiver.repeated
        result.bytes_sent, result.bytes_received = self.line.bytes_sent, self.line.bytes_received
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
    if result.unknown_answers:
        result.warnings.append(f"{result.unknown_answers:,} answers belong to no row that was sent")
    if isinstance(keeper, AnswerDigests):
        write_digests(out / "digests.parquet", keeper.digests)
        if keeper.others:
            result.warnings.append(f"{keeper.others:,} answers belong to no vehicle or request")
        if not result.interrupted and result.ended is None:
            wrong, first = differences(keeper.digests, keeper.digests[:1])
            result.copies_differ = wrong
            result.first_differences = [difference.sentence() for difference in first]
