"""How a drive goes on after its connection was cut: one line in each direction.

The driver connects again and begins with `resume: ANSWERS`, the number of answers that it has. The
system replies `resume: ROWS ANSWERS`: it has the first ROWS rows, and will now send the answers
behind the first ANSWERS, in the same order as before. The driver sends the rows behind the first
ROWS and drops the answers that it has already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

from linearroad.wire.connection import Connection, Cut, Stalled, WireError, read_exactly
from linearroad.wire.format import ERROR, MOST_ERROR_BYTES, other_side_failed

__all__ = ["ask_position", "asks_to_resume", "read_numbers", "resume_line"]

#: No frame of any wire begins with these bytes.
RESUME = b"resume: "
MOST_BYTES = 64  # of a line
WHOLE_S = 1.0  # how long its first bytes may take
MOST_COUNT = 1 << 53


def resume_line(*numbers: int) -> bytes:
    """The line of a driver, with one number, or of a system, with two."""
    return RESUME + b" ".join(b"%d" % number for number in numbers) + b"\n"


def asks_to_resume(connection: Connection) -> bool | None:
    """Whether a driver begins with a line of this kind; None while it has sent nothing."""
    begun, ended = connection.peek(len(RESUME))
    until = time.perf_counter() + WHOLE_S
    while begun and begun != RESUME and RESUME.startswith(begun) and time.perf_counter() < until:
        time.sleep(0.01)
        begun, ended = connection.peek(len(RESUME))
    return begun == RESUME if begun or ended else None


def read_numbers(connection: Connection, many: int) -> Generator[None, None, tuple[int, ...]]:
    """The numbers of such a line; yields while it waits."""
    line = bytearray()
    while not line.endswith(b"\n"):
        most = MOST_ERROR_BYTES if line.startswith(ERROR) else MOST_BYTES
        if len(line) >= most:
            break
        byte = bytearray(1)
        if not (yield from read_exactly(connection, memoryview(byte), within_frame=bool(line))):
            raise Cut(f"{connection.name} disconnected before it said where to go on")
        line += byte
    if line.startswith(ERROR):
        raise other_side_failed(connection, bytes(line))
    words = bytes(line).removeprefix(RESUME).split()
    if not line.startswith(RESUME) or len(words) != many or not all(map(_is_count, words)):
        wanted = " ".join(("ROWS", "ANSWERS")[-many:])
        raise WireError(f"{connection.name} did not send a line `resume: {wanted}`")
    return tuple(map(int, words))


def _is_count(word: bytes) -> bool:
    return word.isdigit() and int(word) <= MOST_COUNT


def ask_position(
    connection: Connection, answers: int, most_s: float, stopped: Callable[[], bool]
) -> tuple[int, int]:
    """Ask a system where to go on; returns its ROWS and ANSWERS."""
    connection.send(resume_line(answers))
    until, reply = time.perf_counter() + most_s, read_numbers(connection, 2)
    while True:
        try:
            next(reply)
        except StopIteration as found:
            rows, sent = found.value
            return rows, sent
        if stopped():
            raise Cut("the drive was stopped")
        if time.perf_counter() > until:
            raise Stalled(f"{connection.name} did not say within {most_s:.0f} s where to go on")
