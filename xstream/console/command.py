"""The command that is running, for pages and result files that record it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["command_line", "command_recorded"]

_running: list[str] = []


@contextmanager
def command_recorded() -> Iterator[None]:
    """Let `command_line` return the arguments of this process while a command runs.

    >>> with command_recorded():
    ...     command_line().split()[0]
    'xstream'
    >>> command_line()
    ''
    """
    _running.append(shlex.join(["xstream", *sys.argv[1:]]))
    try:
        yield
    finally:
        _running.pop()


def command_line() -> str:
    """Return the command as the user typed it; empty if Python code called the library."""
    return _running[-1] if _running else ""
