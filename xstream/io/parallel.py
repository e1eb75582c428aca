"""Decoding on several threads, in order and in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["DECODERS", "in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")

#: The number of threads that decode one file. More would rarely help: a disk has to keep up.
DECODERS = min(os.cpu_count() or 1, 4)


def in_order(
    function: Callable[[Item], Result], items: Iterator[Item], threads: int = DECODERS
) -> Iterator[Result]:
    """The results of a function that releases the GIL, in the order of its items.

    At most `threads` results are computed ahead of the one that is used. If the items end with an
    error, the results of those before it come first. With no threads it is `map`.

    >>> list(in_order(lambda n: n * n, iter(range(5)), threads=2))
    [0, 1, 4, 9, 16]
    """
    if not threads:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    failure: Exception | None = None
    more = True
    pool = ThreadPoolExecutor(threads, "xstream decoder")
    try:
        while more or waiting:
            while more and len(waiting) <= threads:
                try:
                    waiting.append(pool.submit(function, next(items)))
                except StopIteration:
                    more = False
                except Exception as error:
                    more, failure = False, error
            if waiting:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure
