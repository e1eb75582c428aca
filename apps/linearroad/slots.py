"""The tasks that a cluster runs at a time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from linearroad.spark import attempt
from linearroad.spark_settings import is_local

__all__ = ["in_every_slot", "slots_of"]

#: Executors join one by one: all have joined if none has for so long.
JOINING_S, MOST_JOINING_S = 3.0, 60.0
Result = TypeVar("Result")


def slots_of(spark: Any, cores: int = 1) -> int:
    """How many tasks of so many cores run at a time, once no more executors join."""
    context = spark.sparkContext
    known = int(context.defaultParallelism)
    began = joined = time.monotonic()
    if is_local(context.master):
        return max(known // cores, 1)
    while (now := time.monotonic()) < min(joined + JOINING_S, began + MOST_JOINING_S):
        time.sleep(0.1)
        found = int(context.defaultParallelism)
        if found != known:
            known, joined = found, now
    return max(known // cores, 1)


def in_every_slot(spark: Any, number: int, function: Callable[[int], Result]) -> list[Result]:
    """Run a function once in every slot: the tasks of a barrier start together."""
    tasks = spark.sparkContext.parallelize(range(number), number).barrier()
    found: list[Result] = attempt(tasks.mapPartitions(functools.partial(_mapped, function)).collect)
    return found


def _mapped(function: Callable[[int], Result], items: Iterator[int]) -> Iterator[Result]:
    return map(function, items)
