"""Ctrl-C, pressed while a command runs in this process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    """Press it so many seconds from now, unless the block ends before."""
    over = threading.Event()

    def press() -> None:
        if not over.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)

    # A shell that starts tests in the background leaves SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        yield
    finally:
        over.set()
        presser.join()
        signal.signal(signal.SIGINT, before)
