"""Writing in a thread of its own, in order and in bounded memory."""

from __future__ import annotations

import queue
import threading
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["BackgroundWriter", "ColumnWriter"]


class ColumnWriter(Protocol):
    """Takes batches of columns of equal length."""

    def write(self, *columns: NDArray[Any]) -> None:
        """Append a batch."""

    def close(self) -> None:
        """Everything is on disk."""


class BackgroundWriter:
    """Another writer, in a thread of its own: the engine goes on while columns are encoded.

    Up to `MOST` batches wait; a disk that is slower than the engine holds it up, and memory stays
    bounded. What goes wrong is raised where the next batch is given, or in the end.
    """

    MOST = 16  # batches

    def __init__(self, writer: ColumnWriter) -> None:
        self._writer = writer
        self._waiting: queue.Queue[tuple[NDArray[Any], ...] | None] = queue.Queue(self.MOST)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (columns := self._waiting.get()) is not None:
            if self._error is None:  # else what waits is taken and left, so that nobody waits long
                try:
                    self._writer.write(*columns)
                except BaseException as error:
                    self._error = error
            self._waiting.task_done()

    def write(self, *columns: NDArray[Any]) -> None:
        """Pass on a batch; waits while too many are waiting."""
        self._raise()
        self._waiting.put(columns)

    def drain(self) -> None:
        """Wait until the other writer has taken everything."""
        self._waiting.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Wait until everything is written, and close the other writer."""
        self._waiting.put(None)
        self._thread.join()
        try:
            self._raise()
        finally:
            self._writer.close()
