"""Numba's registries, read without interrupts.

Numba reads what its library and its extensions have registered with generators that are kept for
later. One that Ctrl-C has ended cannot be used again: every compilation in the process would fail.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import wraps
from typing import Any

from numba.core.base import BaseContext as TargetContext
from numba.core.typing.context import BaseContext as TypingContext

from xstream.console.interrupts import interrupts_handled_by

__all__ = ["uninterrupted"]


def uninterrupted(refresh: Callable[[Any], None]) -> Callable[[Any], None]:
    """A method of a context, during which Ctrl-C waits."""

    @wraps(refresh)
    def refresh_whole(context: Any) -> None:
        received: list[int] = []
        with interrupts_handled_by(lambda number, frame: received.append(number)):
            refresh(context)
        if received:
            signal.raise_signal(signal.SIGINT)  # now for the handler that was set before

    return refresh_whole


for _context in (TargetContext, TypingContext):
    _context.refresh = uninterrupted(_context.refresh)
