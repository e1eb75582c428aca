"""Columns are written in the background completely, in order and in bounded memory."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from xstream.errors import InputError
from xstream.io.background import BackgroundWriter


class Slow:
    """A writer that blocks until the test lets it write."""

    def __init__(self) -> None:
        self.let = threading.Semaphore(0)
        self.written: list[int] = []
        self.closed = False

    def write(self, *columns: Any) -> None:
        self.let.acquire()
        if columns[0][0] == 13:
            raise InputError("the disk is full")
        self.written.append(int(columns[0][0]))

    def close(self) -> None:
        self.closed = True


def batch(number: int) -> np.ndarray:
    return np.array([number])


def test_batches_are_written_in_the_order_in_which_they_were_given() -> None:
    slow = Slow()
    writer = BackgroundWriter(slow)
    for number in range(100, 100 + BackgroundWriter.MOST):
        writer.write(batch(number))  # nothing is written yet, and no call blocks
    assert slow.written == []
    slow.let.release(BackgroundWriter.MOST)
    writer.close()
    assert slow.written == list(range(100, 100 + BackgroundWriter.MOST))
    assert slow.closed


def test_a_slow_disk_holds_the_engine_up() -> None:
    slow = Slow()
    writer = BackgroundWriter(slow)
    given = []

    def engine() -> None:
        for number in range(100, 102 + BackgroundWriter.MOST):
            writer.write(batch(number))
            given.append(number)

    thread = threading.Thread(target=engine)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()  # one batch is being written, and all others but one wait
    assert len(given) == 1 + BackgroundWriter.MOST
    slow.let.release(1000)
    thread.join()
    writer.close()
    assert len(slow.written) == 2 + BackgroundWriter.MOST


def write_for_long(writer: BackgroundWriter) -> None:
    for _ in range(10_000):
        writer.write(batch(1))


def test_what_goes_wrong_is_raised_to_whoever_writes_next_or_closes() -> None:
    for more in (True, False):
        slow = Slow()
        slow.let.release(1000)
        writer = BackgroundWriter(slow)
        writer.write(batch(13))
        if more:
            with pytest.raises(InputError, match="the disk is full"):
                write_for_long(writer)
        with pytest.raises(InputError, match="the disk is full"):
            writer.close()
        assert slow.closed
        assert slow.written == []
