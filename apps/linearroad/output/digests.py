"""Compares the digests of copies with those of their originals and locates differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.files import whole
from linearroad.operators.digests import DIGEST_WIDTH
from linearroad.schema import KINDS
from linearroad.storage import readable
from xstream.errors import InputError

__all__ = ["Difference", "Digests", "differences", "read_digests", "unshifted", "write_digests"]

#: By expressway, minute and kind of answer: their number, and the sums of weight, weight * who and
#: weight * who^2, modulo 2^64 (`operators.digests`).
Digests = NDArray[np.uint64]

_NAMES = ("count", "weight", "first", "second")
_VEHICLES = 2  # kinds of answers that are for vehicles; the others are for requests
_WORD = 2**64
_TOGETHER = 50  # expressways whose digests are written at a time
SINGULAR = (
    "toll notification", "accident alert", "account balance", "daily expenditure", "travel time",
)  # fmt: skip


def unshifted(sums: NDArray[np.int64], vid_by: int, qid_by: int) -> Digests:
    """Digests (..., kind, 4) as they would be if VIDs and QIDs had not been shifted."""
    found = sums.astype(np.int64).view(np.uint64).copy()
    by = np.where(np.arange(KINDS) < _VEHICLES, vid_by, qid_by).astype(np.uint64)
    _, weight, first, second = np.moveaxis(found, -1, 0)  # views
    plain = first - by * weight
    second[...] = second - np.uint64(2) * by * plain - by * by * weight
    first[...] = plain
    return found


@dataclass(frozen=True)
class Difference:
    """Answers of one kind in one minute that differ between a copy and its original."""

    expressway: int
    minute: int
    kind: int
    given: int
    expected: int
    #: VID or QID, as on the original, of the only answer that differs; None if there are several.
    who: int | None

    def sentence(self) -> str:
        """In words."""
        name = SINGULAR[self.kind]
        place = f"expressway {self.expressway:,}, minute {self.minute}"
        if self.who is None:
            return f"{place}: {self.given:,} {name}s where {self.expected:,} are right, or others"
        whose = f"{'vehicle' if self.kind < _VEHICLES else 'request'} {self.who:,} of the original"
        if self.given == self.expected:
            return f"{place}: the {name} of {whose} differs"
        verb = "is missing" if self.given < self.expected else "is one too many"
        return f"{place}: a {name} of {whose} {verb}"


def differences(
    found: Digests, reference: Digests, first_minute: int = 0, most: int = 20,
    first_expressway: int = 0,
) -> tuple[int, list[Difference]]:  # fmt: skip
    """The number of digests that differ from the originals, and the first differences.

    `reference` has one expressway per original, and `found` has them repeatedly, from the number
    `first_expressway` on. Both begin with the same minute.
    """
    base = len(reference)
    if found.shape[1:] != reference.shape[1:] or len(found) % base:
        raise ValueError(f"digests of {found.shape} cannot be copies of {reference.shape}")
    differ = np.zeros(found.shape[:-1], np.bool_)
    for at in range(0, len(found), base):  # one copy at a time: all would take much memory
        differ[at : at + base] = (found[at : at + base] != reference).any(axis=-1)
    wrong = np.argwhere(differ)
    order = np.lexsort((wrong[:, 2], wrong[:, 0], wrong[:, 1]))  # by minute first
    return len(wrong), [
        _difference(
            (first_expressway + int(x), first_minute + int(m), int(k)), found[x, m, k],
            reference[x % base, m, k],
        )
        for x, m, k in wrong[order][:most]
    ]  # fmt: skip


def _difference(
    place: tuple[int, int, int], given: NDArray[np.uint64], right: NDArray[np.uint64]
) -> Difference:
    """What differs at an expressway, minute and kind."""
    expressway, minute, kind = place
    weight, first, second = (
        (int(g) - int(r)) % _WORD for g, r in zip(given[1:], right[1:], strict=True)
    )
    count = int(given[0]), int(right[0])
    who = _only_one(weight, first, second) if abs(count[0] - count[1]) <= 1 else None
    return Difference(expressway, minute + 1, kind, *count, who)


def _only_one(weight: int, first: int, second: int) -> int | None:
    """`who`, if `first` is weight * who and `second` is weight * who^2: then one answer differs."""
    if not weight:
        return None
    twos = (weight & -weight).bit_length() - 1
    if first % (1 << twos):
        return None
    modulus = 1 << (64 - twos)
    who = (first >> twos) * pow(weight >> twos, -1, modulus) % modulus
    fits = weight * who % _WORD == first and weight * who * who % _WORD == second
    return who if fits and who < 2**31 else None


def write_digests(path: Path, digests: Digests, numbers: Sequence[int] | None = None) -> None:
    """Write digests as Parquet: a row for each expressway, minute and kind with answers.

    `numbers` are those of the expressways, if they do not begin with 0.
    """
    known = np.arange(len(digests)) if numbers is None else np.array(numbers)
    first = _table(digests[:_TOGETHER], known)
    with (
        whole(path) as temporary,
        pq.ParquetWriter(
            temporary, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        writer.write_table(first)
        for at in range(_TOGETHER, len(digests), _TOGETHER):
            writer.write_table(_table(digests[at : at + _TOGETHER], known[at:]))


def _table(digests: Digests, numbers: NDArray[np.int64]) -> pa.Table:
    """The rows of some expressways, whose numbers are the first of `numbers`."""
    place = np.argwhere(digests[..., 0] > 0)
    rows = digests[tuple(place.T)]
    columns: dict[str, NDArray[Any]] = {
        "expressway": numbers[place[:, 0]].astype(np.int32),
        "minute": (place[:, 1] + 1).astype(np.int32),
        "kind": place[:, 2].astype(np.int8),
        **{name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(_NAMES)},
    }
    return pa.table({name: _array(column) for name, column in columns.items()})


def _array(column: NDArray[Any]) -> pa.Array:
    """A column for Arrow; `pa.array` would import pandas."""
    type_ = pa.from_numpy_dtype(column.dtype)
    return pa.Array.from_buffers(type_, len(column), [None, pa.py_buffer(column)])


def read_digests(path: Path, expressways: int, minutes: int, first: int | None = None) -> Digests:
    """Read digests that `write_digests` wrote, as an array of this size.

    `first` is the number of the first expressway to read, where a file has others too.
    """
    digests = np.zeros((expressways, minutes, KINDS, DIGEST_WIDTH), np.uint64)
    try:
        table = pq.read_table(readable(path), partitioning=None, page_checksum_verification=True)
        if first is not None:
            numbers = table["expressway"].to_numpy()
            table = table.filter(pa.array((numbers >= first) & (numbers < first + expressways)))
        place = (
            table["expressway"].to_numpy() - (first or 0), table["minute"].to_numpy() - 1,
            table["kind"].to_numpy(),
        )  # fmt: skip
        for i, name in enumerate(_NAMES):
            digests[(*place, i)] = table[name].to_numpy()
    except (OSError, pa.ArrowException, KeyError, IndexError) as error:
        raise InputError(f"{path} does not contain these digests: {error}") from error
    return digests
