"""Digests of answers by the definition, with Python's integers: slow, and sharing no code.

An answer is weighed by a hash of everything but who it is for; a digest is the number of answers
and the sums of weight, weight * who and weight * who^2, modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Iterable

WORD = 2**64
_FACTORS = (0x7FB5D329728EA185, -0x7E25210B43D22BB3, -0x61C8864680B583EB)


def _signed(word: int) -> int:
    word %= WORD
    return word - WORD if word >= WORD // 2 else word


def weight(kind: int, time: int, value: int, amount: int) -> int:
    """The hash, as a signed number of 64 bits; shifts keep the sign."""
    h = _signed(kind + (time << 3))
    h = _signed((h ^ (h >> 31)) * _FACTORS[0])
    h = _signed((h ^ (h >> 27) ^ value) * _FACTORS[1])
    h = _signed((h ^ (h >> 33) ^ amount) * _FACTORS[2])
    return h ^ (h >> 29)


def parsed(answer: tuple[int, ...]) -> tuple[int, int, int, int, int]:
    """Kind, time, who, value and amount of an answer as `reference.answers` has it."""
    kind = answer[0]
    if kind == 0:
        _, who, time, value, amount = answer
    elif kind == 1:
        _, time, who, value = answer
        amount = 0
    elif kind == 2:
        _, time, _, who, amount = answer
        value = 0
    elif kind == 3:
        _, time, who, amount = answer
        value = 0
    else:
        _, time, who, value, amount = answer
    return kind, time, who, value, amount


def digests(
    answers: Iterable[tuple[int, ...]], minutes: int, kinds: int = 5
) -> list[list[list[int]]]:
    """By minute and kind: the number of answers and the three sums."""
    found = [[[0, 0, 0, 0] for _ in range(kinds)] for _ in range(minutes)]
    for answer in answers:
        kind, time, who, value, amount = parsed(answer)
        w = weight(kind, time, value, amount)
        digest = found[time // 60][kind]
        for i, more in enumerate((1, w, w * who, w * who * who)):
            digest[i] = (digest[i] + more) % WORD
    return found
