"""Align, correlate, cluster, reconstruct: kernels over blocks of receptions."""

import math
from functools import lru_cache
from typing import Any

import numba
import numpy as np

import xstream as xs

HEAD = 2
#: Aligned packets come in blocks of rows: the number of the packet, a bit for each receiver that
#: received it, a bit for each that received it correctly, then the words of every receiver.
NUMBER, HEARD, RIGHT, FIELDS = 0, 1, 2, 3
BLOCK = 64
#: How a packet was obtained.
LOST, HEARD_RIGHTLY, BY_CLUSTERS, BY_EVERYBODY = 0, 1, 2, 3


def _running(dtype: str) -> xs.Out:
    return xs.Out(dtype, start="running", timebase=xs.Timebase.index())


@numba.njit
def popcount(x):
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit
def lowest_bit(x):
    bit = 0
    while not (x >> np.uint64(bit)) & np.uint64(1):
        bit += 1
    return bit


def _table() -> Any:
    """Return the table of CRC-32 with zlib's polynomial."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table.astype(np.uint32)


CRC_TABLE = _table()


@numba.njit
def crc32(words, table):
    """Return the CRC-32 of words, equal to zlib's of their bytes."""
    crc = np.uint32(0xFFFFFFFF)
    for i in range(len(words)):
        word = words[i]
        for byte in range(8):
            at = (crc ^ np.uint32(word >> np.uint64(8 * byte))) & np.uint32(0xFF)
            crc = table[at] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


# -- align -----------------------------------------------------------------------------------
# state.ring: packets that some receivers have delivered and others may still deliver. state.at: the
# next packet, rows in the current block, and 1 + the last packet of each receiver.


@numba.njit
def flush_until(limit, receivers, words, ring, at, block, out):
    slots = len(ring) // (FIELDS + receivers * words)
    row = FIELDS + receivers * words
    while at[0] < limit:
        base = (at[0] % slots) * row
        if ring[base + HEARD]:
            for i in range(row):
                block[at[1] * row + i] = ring[base + i]
            at[1] += 1
            ring[base + HEARD] = 0
            ring[base + RIGHT] = 0
            if at[1] == BLOCK:
                out.emit(block[: BLOCK * row])
                at[1] = 0
        at[0] += 1


def _align(stream, receptions, receivers, words, state, out):
    ring, at, block = state.ring, state.at, state.block
    row, wide = HEAD + words, FIELDS + receivers * words
    slots = len(ring) // wide
    for first in range(0, len(receptions), row):
        number = np.int64(receptions[first])
        if number < at[2 + stream]:
            raise ValueError("the packets of a receiver are not in order")
        if (
            number - at[0] >= slots
        ):  # too far ahead of the slowest receiver, whose packets count as lost
            flush_until(number - slots + 1, receivers, words, ring, at, block, out)
        at[2 + stream] = number + 1
        if number < at[0]:
            continue  # too late
        base = (number % slots) * wide
        ring[base + NUMBER] = np.uint64(number)
        ring[base + HEARD] |= np.uint64(1) << np.uint64(stream)
        if receptions[first + 1]:
            ring[base + RIGHT] |= np.uint64(1) << np.uint64(stream)
        place = base + FIELDS + stream * words
        for i in range(words):
            ring[place + i] = receptions[first + HEAD + i]
    slowest = at[2]
    for receiver in range(1, receivers):
        slowest = min(slowest, at[2 + receiver])
    if out.ended:
        for receiver in range(receivers):
            slowest = max(slowest, at[2 + receiver])
    flush_until(slowest, receivers, words, ring, at, block, out)
    if out.ended and at[1]:
        out.emit(block[: at[1] * wide])
        at[1] = 0


@lru_cache
def align(receivers: int, words: int, slots: int) -> xs.Kernel:
    """Emit the receptions of each packet in one row, in blocks of packets in order."""
    wide = FIELDS + receivers * words
    return xs.kernel(
        state={
            "ring": np.zeros(slots * wide, np.uint64),
            "block": np.zeros(BLOCK * wide, np.uint64),
            "at": np.zeros(2 + receivers, np.int64),
        },
        out=_running("uint64"),
        at_end=True,
    )(_align)


# -- correlate -------------------------------------------------------------------------------
# If one receiver got a packet correctly, the errors of the others are known. state.wrong: for each
# pair, bits that were wrong in both (on the diagonal: in one); state.seen: bits that both received.


@numba.njit
def count_errors(packets, base, truth, receivers, words, wrong, seen):
    """Add a packet to the counts; receivers that got it correctly have no errors."""
    heard, right = packets[base + HEARD], packets[base + RIGHT]
    for i in range(receivers):
        if not (heard >> np.uint64(i)) & np.uint64(1):
            continue
        i_right = (right >> np.uint64(i)) & np.uint64(1)
        for j in range(i, receivers):
            if not (heard >> np.uint64(j)) & np.uint64(1):
                continue
            seen[i * receivers + j] += 64 * words
            if i_right or (right >> np.uint64(j)) & np.uint64(1):
                continue
            both = 0
            for k in range(words):
                a = packets[base + FIELDS + i * words + k] ^ truth[k]
                b = packets[base + FIELDS + j * words + k] ^ truth[k]
                both += popcount(a & b)
            wrong[i * receivers + j] += both


@numba.njit
def correlation(i, j, receivers, wrong, seen):
    """Return the correlation (phi) of the errors of two receivers, i < j."""
    n = seen[i * receivers + j]
    if n == 0:
        return 0.0
    a = wrong[i * receivers + i] / max(seen[i * receivers + i], 1)
    b = wrong[j * receivers + j] / max(seen[j * receivers + j], 1)
    spread = math.sqrt(max(a * (1 - a) * b * (1 - b), 1e-30))
    return (wrong[i * receivers + j] / n - a * b) / spread


def _correlate(packets, receivers, words, state, out):
    wrong, seen = state.wrong, state.seen
    for base in range(0, len(packets), FIELDS + receivers * words):
        right = packets[base + RIGHT]
        if right:
            first = base + FIELDS + lowest_bit(right) * words
            truth = packets[first : first + words]
            count_errors(packets, base, truth, receivers, words, wrong, seen)
    pairs, rates = state.pairs, state.rates
    for i in range(receivers):
        # Never zero: a receiver without errors so far may still make some.
        rates[i] = (wrong[i * receivers + i] + 1.0) / (seen[i * receivers + i] + 1000.0)
        for j in range(i + 1, receivers):
            phi = correlation(i, j, receivers, wrong, seen)
            pairs[i * receivers + j] = pairs[j * receivers + i] = phi
    out.emit(pairs, rates)


@lru_cache
def correlate(receivers: int) -> xs.Kernel:
    """Emit the correlation of the errors of each pair and the error rate of each receiver."""
    square = receivers * receivers
    return xs.kernel(
        state={
            "wrong": np.zeros(square, np.int64),
            "seen": np.zeros(square, np.int64),
            "pairs": np.eye(receivers).ravel(),
            "rates": np.zeros(receivers),
        },
        out={"pairs": _running("float64"), "rates": _running("float64")},
    )(_correlate)


# -- cluster ---------------------------------------------------------------------------------


@xs.kernel(out={"cluster": _running("int64"), "weight": _running("float64")})
def cluster(pairs, rates, limit, out):
    """Cluster receivers with directly or transitively correlated errors; emit weights."""
    receivers = len(rates)
    number, weight = np.arange(receivers), np.empty(receivers)
    for i in range(receivers):
        weight[i] = math.log((1.0 - rates[i]) / rates[i])
        for j in range(i + 1, receivers):
            if pairs[i * receivers + j] > limit:
                old, new = max(number[i], number[j]), min(number[i], number[j])
                for k in range(receivers):
                    if number[k] == old:
                        number[k] = new
    out.emit(number, weight)


# -- reconstruct -----------------------------------------------------------------------------


@numba.njit
def vote(packets, base, chosen, weight, receivers, words, result):
    """Decide each bit by the weights of the chosen receivers; the heaviest one breaks ties."""
    for k in range(words):
        word = np.uint64(0)
        for bit in range(64):
            balance = 0.0
            for i in range(receivers):
                if chosen[i]:
                    one = (packets[base + FIELDS + i * words + k] >> np.uint64(bit)) & np.uint64(1)
                    balance += weight[i] if one else -weight[i]
            if balance > 0:
                word |= np.uint64(1) << np.uint64(bit)
        result[k] = word


@numba.njit
def is_right(result, words, table):
    return np.uint64(crc32(result[: words - 1], table)) == result[words - 1]


@numba.njit
def choose(heard, cluster, weight, receivers, everybody, chosen):
    """Choose the best receiver of each cluster, or all that received the packet."""
    for i in range(receivers):
        chosen[i] = (heard >> np.uint64(i)) & np.uint64(1)
    if everybody:
        return
    for i in range(receivers):
        for j in range(receivers):
            better = weight[j] > weight[i] or (weight[j] == weight[i] and j < i)
            if chosen[i] and i != j and chosen[j] and cluster[i] == cluster[j] and better:
                chosen[i] = 0
                break


def _reconstruct(packets, cluster, weight, receivers, words, table, state, out):
    chosen, result = state.chosen, state.result
    for base in range(0, len(packets), FIELDS + receivers * words):
        right, heard, how = packets[base + RIGHT], packets[base + HEARD], LOST
        if right:
            first = base + FIELDS + lowest_bit(right) * words
            for k in range(words):
                result[k] = packets[first + k]
            how = HEARD_RIGHTLY
        else:
            for attempt in range(2):
                choose(heard, cluster, weight, receivers, attempt == 1, chosen)
                vote(packets, base, chosen, weight, receivers, words, result)
                if is_right(result, words, table):
                    how = BY_CLUSTERS + attempt
                    break
        out.emit(np.int64(packets[base + NUMBER]), how, result)


@lru_cache
def reconstruct(receivers: int, words: int) -> xs.Kernel:
    """Emit every packet, and how it was obtained."""
    return xs.kernel(
        state={"chosen": np.zeros(receivers, np.int64), "result": np.zeros(words, np.uint64)},
        out={"number": int, "how": int, "words": _running("uint64")},
    )(_reconstruct)
