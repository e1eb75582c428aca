"""Work that is repeated in the background while something else runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["repeated"]


@contextmanager
def repeated(work: Callable[[], float | None], first_s: float) -> Iterator[None]:
    """Call `work` in a thread until the block ends, or until `work` has had enough.

    The first call comes after `first_s` seconds; each returns the pause before the next one, or
    None after the last one.

    >>> import time
    >>> calls = []
    >>> with repeated(lambda: calls.append("call"), 0.001):
    ...     time.sleep(0.1)
    >>> calls
    ['call']
    """
    ending = threading.Event()

    def work_on() -> None:
        pause_s: float | None = first_s
        while pause_s is not None and not ending.wait(pause_s):
            pause_s = work()

    thread = threading.Thread(target=work_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
