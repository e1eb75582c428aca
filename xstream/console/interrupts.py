"""Ctrl-C and SIGTERM end a command with one sentence and the exit code of the signal.

A command that is interrupted raises `KeyboardInterrupt`; the text of the exception, if it has one,
is shown to the user and says what was kept.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["exit_on_interrupt", "interrupted_with", "interrupts_handled_by"]

#: Seconds after which a lost interrupt is sent again.
AGAIN_S = 0.05


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Exit with 130 after Ctrl-C and with 143 after SIGTERM, with one sentence on stderr.

    SIGTERM is delivered as if it were Ctrl-C, so that one handler serves both.

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
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
            # A shell ignores Ctrl-C for commands that it starts in the background.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, on_terminate) if is_main else None
    try:
        with _none_is_lost():
            yield
    except KeyboardInterrupt as interrupt:
        what = f": {interrupt}" if str(interrupt) else ""
        print(f"\nxstream: interrupted{what}", file=sys.stderr, flush=True)
        # If Ctrl-C ended a call of `exec` (a dataclass makes such calls), Python remembers that and
        # would end with the signal instead of the exit code; another call of `exec` resets it.
        exec("")
        sys.exit(128 + received)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupted_with(sentence: str) -> Iterator[None]:
    """Set the text of a `KeyboardInterrupt` that has none: what was kept and what was not.

    >>> try:
    ...     with interrupted_with("nothing was written"):
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt as interrupt:
    ...     str(interrupt)
    'nothing was written'
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(str(interrupt) or sentence) from None


@contextmanager
def interrupts_handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call `handler` for Ctrl-C while the block runs; without effect outside the main thread.

    >>> received = []
    >>> with interrupts_handled_by(lambda number, frame: received.append(number)):
    ...     signal.raise_signal(signal.SIGINT)
    >>> received == [signal.SIGINT]
    True
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _none_is_lost() -> Iterator[None]:
    """Send an interrupt again that arrived where Python cannot raise it.

    That is in finalisers and in callbacks from C, for example from LLVM while numba compiles.
    """
    before = sys.unraisablehook
    over = threading.Event()

    def send_again() -> None:
        if not over.wait(AGAIN_S):
            os.kill(os.getpid(), signal.SIGINT)

    def on_lost(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            before(lost)
            return
        threading.Thread(target=send_again, daemon=True).start()

    sys.unraisablehook = on_lost
    try:
        yield
    finally:
        over.set()  # the interrupt may have been handled in another way
        sys.unraisablehook = before
