"""What each manager counts, copies, shares, keeps alive and lets go."""

from __future__ import annotations

import threading
from dataclasses import asdict

import numpy as np
import pytest
from xstream._native import ffi, lib

import xstream as xs
from tests.sigseg.samples import grown_in_core, numbered, pieced, shown

BYTES = 4 * 100  # of a hundred int32


def hundred(start: int, manager: xs.MemoryManager) -> xs.SigSeg:
    return xs.SigSeg(numbered(100, np.int32, start), start, memory=manager)


# -- what is counted -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "passing", "cutting", "joining", "blocks"),
    [
        ("copy-always", BYTES, BYTES // 2, 2 * BYTES, 5),
        ("refcount-copy", 0, 0, 2 * BYTES, 3),
        ("refcount-realloc", 0, 0, BYTES, 2),
        ("refcount-lazy", 0, 0, 0, 2),
    ],
)
def test_what_passing_cutting_and_joining_copy(
    memory: str, passing: int, cutting: int, joining: int, blocks: int
) -> None:
    mm = xs.memory_manager(memory)
    a, b = hundred(0, mm), hundred(100, mm)
    kept = [a.share(), a.subseg(20, 50), a.append(b)]
    stats = mm.stats()
    assert stats.copied_for == {
        "pass": passing, "append": joining, "subseg": cutting, "materialise": 0, "edit": 0
    }  # fmt: skip
    assert stats.bytes_copied == passing + cutting + joining
    assert (stats.shares, stats.subsegs, stats.appends) == (1, 1, 1)
    assert stats.live_blocks == blocks
    with a.edit():
        pass
    assert mm.stats().copied_for["edit"] == BYTES
    assert mm.stats().edits == 1
    assert [len(seg) for seg in kept] == [100, 50, 200]


def test_live_and_peak_follow_the_blocks(manager: xs.MemoryManager) -> None:
    segs = [hundred(100 * i, manager) for i in range(10)]
    stats = manager.stats()
    assert (stats.live_segments, stats.live_blocks, stats.live_bytes) == (10, 10, 10 * BYTES)
    del segs[2:]
    stats = manager.stats()
    assert (stats.live_segments, stats.live_blocks, stats.live_bytes) == (2, 2, 2 * BYTES)
    assert (stats.peak_bytes, stats.allocations) == (10 * BYTES, 10)


def test_building_in_place_copies_nothing(manager: xs.MemoryManager) -> None:
    with xs.SigSeg.build(100, np.int32, memory=manager) as buffer:
        address = buffer.array.ctypes.data
        buffer.array[:] = numbered(100)
    assert np.asarray(buffer.segment).ctypes.data == address
    assert manager.stats().bytes_copied == 0
    assert manager.stats().allocations == 1


def test_stats_read_as_a_mapping_too(manager: xs.MemoryManager) -> None:
    seg = hundred(0, manager)
    stats = manager.stats()
    assert dict(stats) == asdict(stats)
    assert stats["live_bytes"] == stats.live_bytes == seg.nbytes
    with pytest.raises(KeyError):
        stats["keys"]


# -- choosing a manager --------------------------------------------------------------------------


def test_a_with_block_chooses_the_manager_and_blocks_nest() -> None:
    with xs.memory_manager("copy-always") as outer:
        with xs.memory_manager("refcount-copy") as inner:
            assert xs.SigSeg([1]).manager is inner
            assert xs.SigSeg([1], memory="refcount-copy").manager is inner
            assert xs.SigSeg([1], memory="copy-always").manager is not outer
            assert xs.SigSeg([1], memory=outer).manager is outer
        assert xs.SigSeg([1]).manager is outer
        with outer:
            assert xs.SigSeg([1]).manager is outer
    assert xs.SigSeg([1]).memory == "refcount-lazy"


def test_threads_choose_their_managers_independently() -> None:
    """The same manager entered by two threads that overlap: each leaves its own block."""
    mm, seen, turns = xs.memory_manager("refcount-copy"), [], threading.Barrier(2, timeout=20)

    def work(leaves_first: bool) -> None:
        with mm:
            turns.wait()
            if not leaves_first:
                turns.wait()
                seen.append(xs.SigSeg([1]).manager is mm)
        if leaves_first:
            seen.append(xs.SigSeg([1]).memory == "refcount-lazy")
            turns.wait()

    threads = [threading.Thread(target=work, args=(first,)) for first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True, True]


def test_segments_outlive_their_manager() -> None:
    with xs.memory_manager("refcount-realloc") as mm:
        seg = hundred(0, mm)
    array = np.asarray(seg)
    del mm, seg
    assert array[99] == 99


# -- refcount-realloc: growing, pins -------------------------------------------------------------


def test_the_owner_of_the_end_extends_its_block(realloc: xs.MemoryManager) -> None:
    seg = hundred(0, realloc)
    for i in range(1, 200):
        seg = seg.append(hundred(100 * i, realloc))
    stats = realloc.stats()
    assert stats.live_blocks == 1
    assert stats.copied_for["append"] == 199 * BYTES  # each later buffer once, never the earlier
    assert 5 <= stats.reallocations <= 20
    assert stats.moved_reallocations <= stats.reallocations
    assert stats.pinned_copies == 0
    assert np.array_equal(shown(seg), numbered(20_000))


def test_a_block_that_an_array_looks_into_is_pinned(realloc: xs.MemoryManager) -> None:
    a, b = hundred(0, realloc), hundred(100, realloc)
    looking = np.asarray(a)
    address = looking.ctypes.data
    joined = a.append(b)
    assert (realloc.stats().pinned_copies, realloc.stats().reallocations) == (1, 0)
    assert realloc.stats().copied_for["append"] == 2 * BYTES
    assert looking.ctypes.data == address
    assert np.array_equal(looking, numbered(100))
    del looking
    joined = joined.append(hundred(200, realloc))
    again = a.append(b)  # nobody looks any more: the segment's own array does not count
    assert realloc.stats().pinned_copies == 1
    assert realloc.stats().reallocations >= 1
    assert again == joined.subseg(0, 200)


def test_a_pinned_chunk_counts_like_a_pinned_array(realloc: xs.MemoryManager) -> None:
    a = hundred(0, realloc)
    looking = next(a.chunks())
    a.append(hundred(100, realloc))
    assert realloc.stats().pinned_copies == 1
    assert np.array_equal(looking, numbered(100))


def test_branches_of_a_block_do_not_write_over_each_other(realloc: xs.MemoryManager) -> None:
    a = hundred(0, realloc)
    left = a.append(hundred(100, realloc))
    right = a.append(xs.SigSeg(np.zeros(100, np.int32), 100, memory=realloc))
    assert np.array_equal(shown(left), numbered(200))
    assert not shown(right)[100:].any()
    assert realloc.stats().pinned_copies == 0


def test_joining_what_already_lies_together_copies_nothing(memory: str) -> None:
    if memory in ("copy-always", "refcount-copy"):
        pytest.skip("these copy by definition")
    mm = xs.memory_manager(memory)
    seg = hundred(0, mm)
    rejoined = seg.subseg(0, 30).append(seg.subseg(30, 70))
    assert rejoined == seg
    assert rejoined.pieces == 1
    assert mm.stats().bytes_copied == 0
    assert mm.stats().pinned_copies == 0


# -- a long stream through a short window --------------------------------------------------------


@pytest.mark.parametrize("window", [3, 40, 400])
def test_a_sliding_window_over_a_long_stream_stays_bounded(
    window: int, manager: xs.MemoryManager
) -> None:
    """The front is trimmed as the end grows, and the blocks in front go."""
    width, seg = 10, xs.SigSeg.null(dtype=np.int32, memory=manager)
    for i in range(4000):
        seg = seg.append(xs.SigSeg(numbered(width, np.int32, i * width), seg.stop, memory=manager))
        if seg.width > window * width:
            seg = seg.subseg(seg.stop - window * width, window * width)
        if i % 500 == 0:
            assert np.array_equal(shown(seg), numbered(seg.width, np.int32, seg.start))
        stats = manager.stats()
        assert stats.live_blocks <= 4 * window + 80
        assert stats.live_bytes <= (4 * window + 80) * width * 4
    assert np.array_equal(shown(seg), numbered(window * width, np.int32, seg.start))


@pytest.mark.parametrize("first", [0, 1, 50_000, 65_536, 70_000, 99_950])
@pytest.mark.parametrize("few", [1, 9, 50])
def test_what_is_cut_out_of_a_long_list_lets_the_rest_go(
    first: int, few: int, lazy: xs.MemoryManager
) -> None:
    """Shrunk from 100,000 pieces to a few, wherever they are: the next append drops the others."""
    seg = grown_in_core(lazy, 100_000)
    assert lazy.stats().live_blocks == 100_000
    seg = seg.subseg(first, few)
    for _ in range(200):
        seg = seg.append(xs.SigSeg(np.zeros(1, np.int16), seg.stop, memory=lazy))
    assert lazy.stats().live_blocks <= few + 200 + 2 * few + 64
    assert seg.pieces == few + 200


# -- refcount-lazy: values and structure ---------------------------------------------------------


def test_append_never_changes_what_the_earlier_segment_shows(manager: xs.MemoryManager) -> None:
    """Every prefix of a growing accumulator is kept and stays what it was; each one branches."""
    prefixes, seg = [], hundred(0, manager)
    for i in range(1, 60):
        prefixes.append(seg)
        seg = seg.append(hundred(100 * i, manager))
    branches = [
        old.append(xs.SigSeg(np.full(7, -k, np.int32), old.stop, memory=manager))
        for k, old in enumerate(prefixes)
    ]
    for k, (old, branch) in enumerate(zip(prefixes, branches, strict=True)):
        assert np.array_equal(shown(old), numbered(100 * (k + 1)))
        assert np.array_equal(shown(branch)[:-7], shown(old))
        assert (shown(branch)[-7:] == -k).all()
    assert np.array_equal(shown(seg), numbered(6000))


def test_a_list_that_branches_at_every_step_stays_shallow(lazy: xs.MemoryManager) -> None:
    """Twice appended, the second kept: every append is a branch, and runs are merged in time."""
    seg = xs.SigSeg(numbered(1), memory=lazy)
    for i in range(1, 3000):
        one = xs.SigSeg(numbered(1, np.int32, i), i, memory=lazy)
        lost, seg = seg.append(one), seg.append(one)
    del lost
    assert seg.pieces == 3000
    assert np.array_equal(shown(seg), numbered(3000))
    assert [seg[i] for i in range(0, 3000, 97)] == [i % 120 for i in range(0, 3000, 97)]


def test_chunks_of_a_list_are_its_pieces_and_never_copies(lazy: xs.MemoryManager) -> None:
    seg = pieced(numbered(1000), list(range(10, 1000, 10)), memory=lazy)
    cut = seg.subseg(15, 950)
    chunks = list(cut.chunks())
    assert cut.pieces == len(chunks) == 96
    assert [len(chunk) for chunk in chunks] == [5, *[10] * 94, 5]
    assert lazy.stats().bytes_copied == 0
    assert lazy.stats().allocations == 100


@pytest.mark.parametrize("first", [0, 1, 77])
def test_more_than_the_caches_hold_is_made_contiguous_from_ragged_pieces(
    first: int, lazy: xs.MemoryManager
) -> None:
    """12 MB, which are copied past the caches: at any alignment, in pieces of any size."""
    chance = np.random.default_rng(first)
    samples = chance.integers(0, 256, 12 << 20, dtype=np.uint8)
    seg = xs.SigSeg.null(dtype=np.uint8, memory=lazy)
    while seg.width < samples.size:
        width = int(chance.choice([1, 15, 64, 255, 257, 4096, 5001, 100_003]))
        piece = samples[seg.width : seg.width + width]
        seg = seg.append(xs.SigSeg(piece, seg.stop, memory=lazy))
    cut = seg.subseg(first, seg.width - 2 * first)
    assert np.array_equal(np.asarray(cut), samples[first : samples.size - first])
    assert lazy.stats().copied_for["materialise"] == cut.width
    out = np.zeros(cut.width + 63, np.uint8)
    read = out[first % 64 :][: cut.width]
    lib.xs_seg_read(cut._handle, cut.start, cut.width, ffi.from_buffer(read))
    assert np.array_equal(read, np.asarray(cut))


def test_a_million_pieces_are_freed_at_once(lazy: xs.MemoryManager) -> None:
    """No recursion, whatever the length: run in a thread with little stack."""
    pieces: list[int] = []

    def grow_and_drop() -> None:
        pieces.append(grown_in_core(lazy, 1_000_000).pieces)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=grow_and_drop)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert pieces == [1_000_000]
    assert lazy.stats().live_blocks == 0
