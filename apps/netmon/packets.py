"""Synthetic receptions of one sender's packets by several receivers.

A reception is a row of 64-bit words: the number of the packet, whether the receiver's hardware
found the checksum correct, and the received bits. The last word of a packet is its CRC-32.
Receivers in one place are subject to the same interference, so their errors are correlated, and
clustering detects that.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xstream.errors import InputError

__all__ = ["HEAD", "Receptions", "generate", "repeated"]

#: Words before the bits of a packet: its number, and whether its checksum is correct.
HEAD = 2
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Receptions:
    """An array of words for each receiver, and the packets that were sent."""

    streams: tuple[Words, ...]
    #: Words per packet, including its checksum.
    words: int
    packets: int
    #: The packets that were sent.
    sent: Words
    #: The group of each receiver.
    groups: tuple[int, ...]

    @property
    def row(self) -> int:
        """Words per reception."""
        return HEAD + self.words


def checksum(words: Words) -> int:
    """Return the CRC-32 of the bits of a packet, equal to `zlib.crc32`."""
    return zlib.crc32(words.tobytes())


def generate(
    packets: int = 4_000,
    receivers: int = 6,
    groups: int = 3,
    words: int = 32,
    error_rate: float = 4e-4,
    loss: float = 0.02,
    seed: int = 1,
) -> Receptions:
    """Generate packets of `words` words, received by groups of receivers.

    Interference affects a group during a part of a packet and flips bits of all its receivers; each
    receiver also has its own errors. `error_rate` is the bit error rate over all.

    >>> heard = generate(packets=100, receivers=4, groups=2, seed=3)
    >>> len(heard.streams), heard.groups, heard.streams[0].shape[0] % heard.row
    (4, (0, 0, 1, 1), 0)
    """
    if not 1 <= groups <= receivers <= 16:
        raise InputError(f"{receivers} receivers, 16 at most, cannot stand in {groups} groups")
    if words < 2 or packets < 1:
        raise InputError(f"{packets} packets of {words} words: at least 1 packet of 2 words")
    if not (0 <= error_rate < 0.1 and 0 <= loss < 1):
        raise InputError("the error rate is below 0.1 and the loss below 1, and neither below 0")
    rng = np.random.default_rng(seed)
    sent = rng.integers(0, 2**64, (packets, words), np.uint64)
    sent[:, -1] = [checksum(packet[:-1]) for packet in sent]
    member = tuple(receiver * groups // receivers for receiver in range(receivers))
    bursts = [_interference(rng, packets, words, error_rate) for _ in range(groups)]
    streams = []
    for receiver in range(receivers):
        burst = bursts[member[receiver]]
        # Most of a burst affects every receiver of the group; each also has its own errors.
        own = _flips(rng, packets, words, error_rate * 0.1)
        errors = (burst & ~_flips(rng, packets, words, 0.2)) ^ own
        heard = np.flatnonzero(rng.random(packets) >= loss)
        rows = np.empty((len(heard), HEAD + words), np.uint64)
        rows[:, 0] = heard
        rows[:, 1] = ~errors[heard].any(axis=1)
        rows[:, HEAD:] = sent[heard] ^ errors[heard]
        streams.append(rows.ravel())
    return Receptions(tuple(streams), words, packets, sent, member)


def repeated(heard: Receptions, times: int) -> Receptions:
    """Repeat receptions with continuing numbers, for benchmarks."""
    streams = []
    for stream in heard.streams:
        rows = np.tile(stream.reshape(-1, heard.row), (times, 1))
        again = np.repeat(np.arange(times, dtype=np.uint64), len(stream) // heard.row)
        rows[:, 0] += again * np.uint64(heard.packets)
        streams.append(rows.ravel())
    sent = np.tile(heard.sent, (times, 1))
    return Receptions(tuple(streams), heard.words, heard.packets * times, sent, heard.groups)


def _flips(rng: np.random.Generator, packets: int, words: int, rate: float) -> Words:
    """Return words whose bits are one with the given probability."""
    flips = np.zeros((packets, words), np.uint64)
    count = rng.binomial(packets * words * 64, rate)
    at = rng.integers(0, packets * words, count)
    np.bitwise_or.at(flips.ravel(), at, np.uint64(1) << rng.integers(0, 64, count, np.uint64))
    return flips


def _interference(rng: np.random.Generator, packets: int, words: int, rate: float) -> Words:
    """Return interference in half of the packets, over a quarter of their length."""
    struck = rng.random(packets) < 0.5
    first = rng.integers(0, words, packets)
    place = (np.arange(words)[None, :] - first[:, None]) % words < max(1, words // 4)
    inside = struck[:, None] & place
    return np.where(inside, _flips(rng, packets, words, min(0.5, rate * 8)), np.uint64(0))
