"""`File`: the base class of all files, as sources and as sinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from xstream.engine.native import NativePlan
from xstream.engine.operator import MAX_SIZE, Operator
from xstream.engine.schema import Schema, shortened
from xstream.errors import GraphError, InputError
from xstream.io.contents import LAYOUTS, Contents
from xstream.io.feed import READ_AHEAD_BLOCKS, Block, Feed
from xstream.io.not_a_number import by_policy, check_policy
from xstream.io.output import OutputFile, Signals, TableWriter
from xstream.io.quarantine import DamagedInput, Quarantine
from xstream.io.sink import FileSink
from xstream.sigseg import Timebase

__all__ = ["BLOCK_BYTES", "File", "SampleFile", "read_only_file", "without"]

GAPS = ("error", "join", "fill")
#: The approximate size of a block: large enough for the cost of handing it over to be small, and
#: small enough for a few to fit in the caches.
BLOCK_BYTES = 2 << 20


@dataclass(frozen=True, eq=False)
class File(Operator):
    """A file as a source of columns of samples, and as a sink (`stream.write`).

    Formats describe the contents of a file (`contents`), read its blocks (`blocks`) and write
    columns (`writer`). Everything else is done here, in the feed and in the sink.
    """

    ports = ()
    #: The layouts that a format supports for several columns.
    layouts: ClassVar[tuple[str, ...]] = ("fields", "streams", "rows")

    path: Path
    window: int = 4096
    layout: str = "fields"
    partial: bool = True
    rate_hz: float | None = None
    start_time: float = 0.0
    nan: str = "keep"
    on_error: str = "raise"
    quarantine: Path | None = field(default=None, repr=False)
    budget: int = 1000
    gap: str = "error"

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | Path):
            raise GraphError(f"{self.kind}: a path is wanted, not {self.path!r}")
        object.__setattr__(self, "path", Path(self.path))
        whole = isinstance(self.window, int) and not isinstance(self.window, bool)
        if not whole or not 1 <= self.window <= MAX_SIZE:
            raise GraphError(
                f"{self.kind}: a window has 1 to {MAX_SIZE} samples, not {shortened(self.window)}"
            )
        self._check_choice("layout", self.layouts)
        check_policy(self.kind, self.nan)
        self._check_choice("gap", GAPS)
        self._check_choice("on_error", ("raise", "quarantine"))
        self._check_quarantine()
        if self.rate_hz is not None:
            Timebase(self.rate_hz, self.start_time)

    def _check_quarantine(self) -> None:
        if (self.on_error == "quarantine") != (self.quarantine is not None):
            raise GraphError(
                f"{self.kind}: on_error='quarantine' and quarantine=FILE are given together"
            )
        if not isinstance(self.quarantine, str | Path | None):
            raise GraphError(f"{self.kind}: quarantine is a path, not {self.quarantine!r}")
        if self.quarantine and Path(self.quarantine).resolve() == self.path.resolve():
            raise GraphError(f"{self.kind}: {self.path} cannot be its own file for bad input")
        if type(self.budget) is not int or self.budget < 1:
            raise GraphError(
                f"{self.kind}: budget is a whole number from 1 on, not {self.budget!r}"
            )

    def _check_choice(self, name: str, choices: Sequence[str]) -> None:
        if getattr(self, name) not in choices:
            known = ", ".join(map(repr, choices))
            raise GraphError(f"{self.kind}: {name} is {known}, not {getattr(self, name)!r}")

    # -- implemented by formats --------------------------------------------------------------

    def contents(self) -> Contents:
        """The contents of the file; raises an InputError if it does not have this format."""
        raise NotImplementedError

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        """Yield the columns, starting at a row, block by block."""
        raise NotImplementedError

    def check_signals(self, signals: Signals) -> None:
        """Raise a SchemaError if the format cannot store the signals."""

    def named(self, signals: Signals) -> Signals:
        """The signals under the names of the columns that are written."""
        return signals

    def writer(self, output: OutputFile, signals: Signals) -> TableWriter:
        """A writer of columns into a new file, or into one that was cut back."""
        raise NotImplementedError

    @property
    def indexed(self) -> bool:
        """Whether the file has a column for the indices of samples."""
        return False

    # -- as a source -------------------------------------------------------------------------

    @property
    def read_ahead(self) -> int:
        """The largest number of blocks that are read ahead."""
        return READ_AHEAD_BLOCKS

    def timebase(self, contents: Contents) -> Timebase:
        """The timebase of the samples; a given rate takes precedence over the file's own."""
        rate_hz = contents.rate_hz if self.rate_hz is None else self.rate_hz
        if rate_hz is not None:
            rate_hz *= contents.interleaved
        start_time = self.start_time or contents.start_time
        return Timebase.index() if rate_hz is None else Timebase(rate_hz, start_time)

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return self._schemas(self.contents())

    def _schemas(self, contents: Contents) -> tuple[Schema, ...]:
        return contents.schemas(f"{self.kind}: {self.path}", self.layout, self.timebase(contents))

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        contents = self.contents()
        if self._schemas(contents) != outputs:
            raise InputError(
                f"{self.kind}: {self.path} has changed since the query was declared: it now has "
                f"{', '.join(map(str, self._schemas(contents)))}"
            )
        quarantine = self._quarantine()
        feed = Feed(
            plan, partial(self._checked_blocks, contents.interleaved, quarantine),
            contents.column_dtypes(self.layout), self._identity(),
            row_samples=contents.interleaved, read_ahead=self.read_ahead, quarantine=quarantine,
        )  # fmt: skip
        return feed.source(plan, self.native_layout, self.window, self.partial)

    @property
    def native_layout(self) -> str:
        """How the core makes tuples of blocks."""
        return "fields" if self.layout == "interleaved" else self.layout

    def checked_blocks(self, row: int) -> Iterator[Block]:
        """The blocks from a row on, by the policies of the file."""
        quarantine = self._quarantine()
        try:
            if quarantine is not None:
                quarantine.open()
            yield from self._checked_blocks(self.contents().interleaved, quarantine, row)
        finally:
            if quarantine is not None:
                quarantine.close()

    def _quarantine(self) -> Quarantine | None:
        return Quarantine(self.quarantine, self.budget) if self.quarantine else None

    def _identity(self) -> dict[str, Any]:
        """Values that identify the file, to check that a position belongs to it."""
        return {"file_bytes": self.path.stat().st_size}

    def _checked_blocks(
        self, interleaved: int, quarantine: Quarantine | None, row: int
    ) -> Iterator[Block]:
        """The blocks, with the policy for NaNs; operating system errors become one sentence."""
        skipped = row if quarantine else 0  # rows that are left out are not counted
        try:
            for block in without(self.blocks(row - skipped, quarantine), skipped * interleaved):
                yield from by_policy(block, self.nan, str(self.path), row, interleaved)
                row += len(block[0]) // interleaved
        except DamagedInput as error:
            if quarantine is None or not row:  # nothing can be read
                raise
            quarantine.put(self.path, "row", row, str(error), "")
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from error

    # -- as a sink ---------------------------------------------------------------------------

    def sink_operator(self) -> Operator:
        """The file as a sink."""
        return FileSink(self)


@dataclass(frozen=True, eq=False)
class SampleFile(File):
    """A file of frames: one sample of every channel, one frame after another."""

    layouts = LAYOUTS

    def frame(self) -> tuple[np.dtype[Any], int, float | None, int | None]:
        """The sample type, channels, rate and length in frames, from the file's header."""
        raise NotImplementedError

    def contents(self) -> Contents:
        dtype, channels, rate_hz, frames = self.frame()
        if self.layout == "interleaved":
            return Contents(("value",), (dtype,), rate_hz, frames, interleaved=channels)
        names = ("value",) if channels == 1 else tuple(f"ch{i}" for i in range(channels))
        return Contents(names, (dtype,) * channels, rate_hz, frames)

    def columns_of(self, frames: npt.NDArray[Any]) -> Block:
        """Frames in the form of the layout: one array per channel, or one for all channels."""
        if frames.ndim == 1:
            return (frames,)
        if self.layout == "interleaved" or frames.shape[1] == 1:
            return (frames.reshape(-1),)
        return [np.ascontiguousarray(frames[:, i]) for i in range(frames.shape[1])]

    def block_rows(
        self, dtype: np.dtype[Any], channels: int, block_bytes: int = BLOCK_BYTES
    ) -> int:
        """The number of frames in a block: whole windows, so that no window spans two blocks."""
        rows = max(block_bytes // (dtype.itemsize * channels), 1)
        window = self.window if self.layout != "interleaved" else -(-self.window // channels)
        return max(rows // window, 1) * window if window <= 8 * rows else rows


def without(blocks: Iterator[Block], samples: int) -> Iterator[Block]:
    """Blocks without the first samples."""
    for block in blocks:
        length = len(block[0])
        if length > samples:
            yield [column[samples:] for column in block] if samples else block
        samples = max(samples - length, 0)


def read_only_file(kind: str, path: Path) -> None:
    """Raise an InputError if the path is not a readable file, before a library does."""
    if not path.exists():
        raise InputError(f"{kind}: {path} does not exist")
    if not path.is_file():
        raise InputError(f"{kind}: {path} is not a file")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise InputError(f"{kind}: {path} cannot be read: {error.strerror}") from error
    if empty:
        raise InputError(f"{kind}: {path} is empty")
