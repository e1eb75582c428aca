"""Python threads on the same segments: the core runs without the interpreter's lock.

What the C stress in tests/native proves about counts, this shows about arrays and errors.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import xstream as xs
from tests.sigseg.samples import grown_in_core, numbered, pieced, shown

THREADS, ROUNDS = 4, 1500


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_together(work: object, *arguments: object) -> None:
    """Call `work(number, *arguments)` in four threads, and raise what any of them raised."""
    errors: list[BaseException] = []
    gate = threading.Barrier(THREADS)

    def guarded(number: int) -> None:
        try:
            gate.wait(20)
            work(number, *arguments)  # type: ignore[operator]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_four_threads_share_append_cut_materialise_and_drop(manager: xs.MemoryManager) -> None:
    common = pieced(numbered(400), list(range(10, 400, 10)), memory=manager)

    def work(number: int) -> None:
        chance, kept = random.Random(number), []
        seg = common
        for _ in range(ROUNDS):
            fresh = np.full(chance.randrange(1, 9), number, np.int32)
            seg = seg.share().append(xs.SigSeg(fresh, seg.stop, memory=manager))
            assert (np.asarray(seg.subseg(seg.stop - len(fresh), len(fresh))) == number).all()
            first = chance.randrange(400)
            cut = common.subseg(first, chance.randrange(1, 401 - first))
            kept.append((np.asarray(cut), first))
            if len(kept) > 20:
                array, start = kept.pop(chance.randrange(20))
                assert np.array_equal(array, numbered(len(array), np.int32, start))
            if chance.random() < 0.1:
                assert np.array_equal(np.asarray(seg)[:400], numbered(400))
                seg = common

    run_together(work)
    assert np.array_equal(shown(common), numbered(400))


def test_one_of_four_takes_the_end_and_the_others_branch(manager: xs.MemoryManager) -> None:
    for _ in range(60):
        base = pieced(numbered(20), [10], memory=manager)
        grown: list[xs.SigSeg | None] = [None] * THREADS

        def work(
            number: int, base: xs.SigSeg = base, grown: list[xs.SigSeg | None] = grown
        ) -> None:
            grown[number] = base.append(
                xs.SigSeg(np.full(5, number, np.int32), base.stop, memory=manager)
            )

        run_together(work)
        for number, seg in enumerate(grown):
            assert seg is not None
            assert np.array_equal(shown(seg), [*range(20), *[number] * 5])


def test_a_list_that_four_threads_materialise_at_once_is_kept_once(lazy: xs.MemoryManager) -> None:
    for _ in range(20):
        seg = grown_in_core(lazy, 2000, 16)
        arrays: list[object] = [None] * THREADS

        def work(number: int, seg: xs.SigSeg = seg, arrays: list[object] = arrays) -> None:
            arrays[number] = np.asarray(seg.share())

        run_together(work)
        assert lazy.stats().live_blocks == 2001
        assert all(np.shares_memory(array, np.asarray(seg)) for array in arrays)
        del seg, arrays, work
