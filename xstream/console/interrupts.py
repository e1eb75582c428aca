"""Ctrl-C and SIGTERM end a command with one sentence and the exit code of the signal.

A command that is interrupted raises `KeyboardInterrupt`; the text of the exception, if there is
one, is the sentence that the user reads: what was kept and what was not.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["exit_on_interrupt"]


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Exit with 130 after Ctrl-C and with 143 after SIGTERM, with one sentence on stderr.

    SIGTERM is delivered as if it were Ctrl-C, so that whoever handles one handles both.

    >>> try:
    ...     with exit_on_interrupt():
    ...         raise KeyboardInterrupt("2 of 5 trials were kept")
    ... except SystemExit as error:
    ...     error.code
    130
    """
    received = signal.SIGINT

    def on_terminate(number: int, _: object) -> None:
        nonlocal received
        received = signal.SIGTERM
        signal.raise_signal(signal.SIGINT)

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, on_terminate) if is_main else None
    try:
        yield
    except KeyboardInterrupt as interrupt:
        what = f": {interrupt}" if str(interrupt) else ""
        print(f"\nxstream: interrupted{what}", file=sys.stderr, flush=True)
        sys.exit(128 + received)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
