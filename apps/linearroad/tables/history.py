"""History as tables of addresses by expressway, as the operator for requests takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linearroad.generation.manifest import read_manifest
from linearroad.history.files import SEGMENT_COLUMNS, TOLL_COLUMNS, read_sums, read_tolls
from linearroad.history.store import (
    ExpresswayHistory,
    check_stores,
    mapped_stores,
    open_stores,
)
from linearroad.operators.requests import SUM_TABLE, TOLL_TABLE
from xstream.console.memory import available_bytes
from xstream.io.page_checksums import has_page_checksums

__all__ = ["History", "load_history"]

_PAGE_BYTES = 4096


def _checked() -> None:
    """All files are checked."""


@dataclass(frozen=True)
class History:
    """The history of each expressway; keeps the arrays alive."""

    tolls: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = field(default_factory=dict)
    sums: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    #: Whether SegmentHistory was loaded; travel times cannot be computed without it.
    knows_segments: bool = False
    #: Parquet files without page checksums that it was read from.
    unverified: tuple[Path, ...] = ()
    #: The number to subtract from a VID before the search, by expressway; 0 if not listed.
    vids_by: dict[int, int] = field(default_factory=dict)

    #: Waits until its files are checked; raises an InputError if one is damaged.
    ready: Callable[[], None] = _checked

    @classmethod
    def of_stores(
        cls, stores: dict[int, ExpresswayHistory], ready: Callable[[], None] = _checked
    ) -> History:
        """From the compact stores of expressways."""
        return cls(
            {xway: (store.toll_vids, store.tolls) for xway, store in stores.items()},
            {xway: store.segment_sums for xway, store in stores.items()},
            bool(stores),
            ready=ready,
        )

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        tolls = sum(vids.nbytes + spent.nbytes for vids, spent in self.tolls.values())
        return tolls + sum(array.nbytes for array in self.sums.values())

    def copied(self, xway_by: int, vid_by: int) -> History:
        """The same history for a copy of the expressways; the arrays are shared."""
        if not xway_by:
            return self
        return History(
            {xway + xway_by: table for xway, table in self.tolls.items()},
            {xway + xway_by: table for xway, table in self.sums.items()},
            self.knows_segments,
            self.unverified,
            {xway + xway_by: vid_by for xway in self.tolls},
        )

    def toll_tables(self) -> NDArray[Any]:
        """The addresses of the tolls (`TOLL_TABLE`), by expressway in ascending order."""
        rows = [
            (xway, vids.ctypes.data, len(vids), tolls.ctypes.data, self.vids_by.get(xway, 0))
            for xway, (vids, tolls) in sorted(self.tolls.items())
        ]
        return np.array(rows, TOLL_TABLE)

    def sum_tables(self) -> NDArray[Any]:
        """The addresses of the sums (`SUM_TABLE`), by expressway in ascending order."""
        rows = [(xway, sums.ctypes.data) for xway, sums in sorted(self.sums.items())]
        return np.array(rows, SUM_TABLE)


def load_history(
    directory: Path | None,
    tolls: Path | None,
    segment_history: Path | None,
    wait: bool = True,
    xways: Sequence[int] | None = None,
) -> History:
    """The history of a generated directory (or of some expressways), of files, or an empty one.

    Without `wait` the directory is checked while the caller goes on, who has to call `ready`
    before the arrays are used.
    """
    known = History()
    if directory is not None and xways is not None:
        known = History.of_stores(open_stores(directory, read_manifest(directory), xways))
    elif directory is not None:
        known = _of_directory(directory, wait)
    return History(
        known.tolls if tolls is None else read_tolls(tolls),
        known.sums if segment_history is None else read_sums(segment_history),
        known.knows_segments or segment_history is not None,
        tuple(
            path
            for path, columns in ((tolls, TOLL_COLUMNS), (segment_history, SEGMENT_COLUMNS))
            if path is not None
            and path.suffix == ".parquet"
            and not has_page_checksums(path, columns)
        ),
        ready=known.ready,
    )


def _of_directory(directory: Path, wait: bool) -> History:
    manifest = read_manifest(directory)
    if wait:
        stores = open_stores(directory, manifest)
        _read_pages(stores)
        return History.of_stores(stores)
    stores = mapped_stores(directory, manifest)

    def check() -> None:
        check_stores(directory, manifest, stores)
        _read_pages(stores)

    checking = ThreadPoolExecutor(1, "history")
    checked = checking.submit(check)
    checking.shutdown(wait=False)
    return History.of_stores(stores, checked.result)


def _read_pages(stores: dict[int, ExpresswayHistory]) -> int:
    """Read pages into memory, so that lookups rarely wait for the disk; returns their bytes.

    The files stay memory-mapped. Those of many expressways may be larger than the memory: what is
    asked most comes first, and half of the free memory is left to the state of the query.
    """
    most, read = available_bytes() // 2, 0
    for name in ("toll_vids", "segment_sums", "tolls"):
        for store in stores.values():
            array = getattr(store, name)
            if read + array.nbytes > most:
                return read
            array.reshape(-1)[:: _PAGE_BYTES // array.itemsize].max(initial=0)
            read += array.nbytes
    return read
