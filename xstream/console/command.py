"""The command that is running, for pages and result files that say how they were made."""

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
    """The command with its arguments as the user typed them; empty where Python code called us."""
    return _running[-1] if _running else ""
