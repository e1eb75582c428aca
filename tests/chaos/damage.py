"""Files of checkpoints that are cut short at every byte, or in which bits are flipped."""

from __future__ import annotations

import random
from pathlib import Path

from tests.chaos.subjects import run_signal
from xstream.recovery.format import DamagedError, read_checkpoint

__all__ = ["damaged_files"]


def recognised(path: Path, contents: bytes) -> bool:
    """Whether a file with these contents is recognised as damaged."""
    path.write_bytes(contents)
    try:
        read_checkpoint(path)
    except DamagedError:
        return True
    return False


def damaged_files(scratch: Path, flips: int, seed: int) -> tuple[str, bool]:
    """Damage a checkpoint in every way; a sentence, and whether any damage went unnoticed."""
    scratch.mkdir(parents=True)
    run_signal(scratch, False)
    whole = max((scratch / "checkpoints").iterdir()).read_bytes()
    path = scratch / "damaged"
    unnoticed = sum(not recognised(path, whole[:length]) for length in range(len(whole)))
    chance, bits = random.Random(seed), bytearray(whole)
    for _ in range(flips):
        bit = chance.randrange(8 * len(bits))
        bits[bit // 8] ^= 1 << bit % 8
        unnoticed += not recognised(path, bits)
        bits[bit // 8] ^= 1 << bit % 8
    return (
        f"damaged files: {len(whole):,} lengths and {flips:,} flipped bits, {unnoticed} unnoticed",
        unnoticed > 0,
    )
