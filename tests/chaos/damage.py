"""Files of checkpoints that are cut short at every byte, or in which bits are flipped."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import xstream as xs
from tests.chaos.subjects import CHECKPOINTS, run_signal
from xstream.recovery.format import DamagedError, read_checkpoint
from xstream.recovery.generations import Generations

__all__ = ["damaged_files"]


@xs.kernel(state=np.arange(1 << 15))
def remembered(window, state):  # type: ignore[no-untyped-def]
    state[int(window[0]) % len(state)] += 1
    return state[0]


def run_large(folder: Path) -> None:
    """A query with more state than the signal query has."""
    query = xs.Query("large")
    samples = np.arange(1_000_000.0)
    query.source(xs.io.array(samples, rate_hz=1000.0, window=100)).map(remembered).count()
    query.run(tuple_burst=4, checkpoint=folder / CHECKPOINTS, checkpoint_s=1e-6)


def latest(folder: Path) -> Path:
    """The file of the latest checkpoint of a run that has ended."""
    generations = Generations(folder / CHECKPOINTS)
    try:
        return generations.path(generations.numbers()[0])
    finally:
        generations.close()


def recognised(path: Path) -> bool:
    """Whether a file is recognised as damaged."""
    try:
        read_checkpoint(path)
    except DamagedError:
        return True
    return False


def cut_short(path: Path) -> tuple[int, int]:
    """Cut a file at every byte, from its end; the lengths, and how many went unnoticed."""
    unnoticed, length = 0, path.stat().st_size
    with path.open("r+b") as file:
        for shorter in reversed(range(length)):
            file.truncate(shorter)
            unnoticed += not recognised(path)
    return length, unnoticed


def flipped(path: Path, flips: int, seed: int) -> int:
    """Flip random bits of a file, one at a time; how many of them went unnoticed."""
    chance, unnoticed, whole = random.Random(seed), 0, path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for _ in range(flips):
            place, bit = divmod(chance.randrange(8 * len(whole)), 8)
            for mask in (1 << bit, 0):  # and back
                file.seek(place)
                file.write(bytes([whole[place] ^ mask]))
                unnoticed += mask > 0 and not recognised(path)
    read_checkpoint(path)  # raises an error unless it is as it was
    return unnoticed


def damaged_files(scratch: Path, flips: int, seed: int) -> tuple[str, bool]:
    """Damage checkpoints in every way; a sentence, and whether any damage went unnoticed."""
    for name in ("small", "large"):
        (scratch / name).mkdir(parents=True)
    run_signal(scratch / "small", False)
    run_large(scratch / "large")
    large = latest(scratch / "large")
    lengths, unnoticed = cut_short(latest(scratch / "small"))
    unnoticed += flipped(large, flips, seed)
    return (
        f"damaged files: {lengths:,} lengths, and {flips:,} flipped bits of "
        f"{large.stat().st_size:,} bytes, {unnoticed} unnoticed",
        unnoticed > 0,
    )
