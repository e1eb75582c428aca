"""`FileSink`: collects tuples in groups, which a thread writes to a file."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xstream._native import ffi, lib
from xstream.engine.attachment import Outcome, Position
from xstream.engine.native import NativePlan, checked
from xstream.engine.operator import Operator
from xstream.engine.schema import Scalar, Schema, Segment
from xstream.errors import InputError, SchemaError, SegmentMemoryError
from xstream.io.output import Columns, OutputFile, Signals, TableWriter, missing
from xstream.sigseg import Timebase

if TYPE_CHECKING:
    from xstream.io.file import File

__all__ = ["GROUPS", "FileSink", "Watched", "Writer", "signals_of"]

#: The largest number of groups that wait for the writer.
GROUPS = 4
_PATIENCE_NS = 100_000_000
_tokens = itertools.count(1)
_watched: dict[int, weakref.ref[Watched]] = {}


@dataclass(frozen=True)
class FileSink(Operator):
    """Writes every tuple to a file."""

    file: File

    @property
    def label(self) -> str:
        return f"write {self.file.kind}"

    def outputs(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        self.file.check_signals(self._signals(inputs[0]))
        return ()

    def _signals(self, schema: Schema) -> Signals:
        return self.file.named(signals_of(self.label, schema))

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        writer = Writer(plan, self.file, inputs[0], self._signals(inputs[0]))
        writer.op = checked(lib.xs_op_drain_sink(plan.handle, writer.drain))
        plan.attach(writer.op, writer)
        return writer.op


def signals_of(label: str, schema: Schema) -> Signals:
    """The columns of a stream, whose fields are all scalars, or all segments of one timebase."""
    names = tuple(field.name for field in schema)
    if all(isinstance(type_, Scalar) for type_ in schema.types):
        kinds = tuple(np.dtype(getattr(type_, "kind", "")) for type_ in schema.types)
        return Signals(names, kinds, Timebase.index(), records=True)
    segments = [type_ for type_ in schema.types if isinstance(type_, Segment)]
    if len(segments) < len(schema) or len({each.timebase for each in segments}) > 1:
        raise SchemaError(
            f"{label}, port 'in': needs fields that are all scalars, or all segments of one "
            f"timebase, not {schema}; .select(...) chooses fields"
        )
    dtypes = tuple(each.dtype for each in segments)
    return Signals(names, dtypes, segments[0].timebase, records=False)


class Watched:
    """A drain for which the engine waits. Meanwhile Ctrl-C and a stop of the run are noticed."""

    def __init__(self, plan: NativePlan, drain: Any) -> None:
        self.drain, self._plan = drain, weakref.ref(plan)
        self.token = next(_tokens)
        _watched[self.token] = weakref.ref(self)
        lib.xs_drain_watch(drain, self.token)

    def __del__(self, watched: Any = _watched) -> None:
        watched.pop(self.token, None)

    def stop_asked(self) -> bool:
        """Let the run look for a stop; return whether there is one."""
        plan = self._plan()
        if plan is not None:
            plan.look_up()
        return plan is not None and bool(lib.xs_plan_stopped(plan.handle))


@ffi.def_extern(error=1)  # type: ignore[untyped-decorator]
def xs_io_look_up(token: int) -> int:
    """Called by the core while it waits for a writer."""
    watched = _watched[token]()
    if watched is not None:
        watched.stop_asked()
    return 0


class Writer(Watched):
    """Takes groups of tuples from the engine and writes them as columns, in a thread."""

    def __init__(self, plan: NativePlan, file: File, schema: Schema, signals: Signals) -> None:
        self.file, self.schema, self.signals = file, schema, signals
        self.error: BaseException | None = None
        self.op: Any = None
        handle = lib.xs_drain_new(len(schema), schema.segment_bits, GROUPS)
        if not handle:
            raise SegmentMemoryError("no memory is left for a sink")
        super().__init__(plan, ffi.gc(handle, lib.xs_drain_drop))
        self.rows = 0
        self._stop: int | None = None  # the index after the last sample
        self._from: Position | None = None
        self._format: TableWriter | None = None
        self._outcome: Outcome = "failed"
        self._over = threading.Event()  # the run has ended, and its outcome is known
        self._asked, self._flushed = threading.Event(), threading.Event()
        self._asking = False
        self._thread: threading.Thread | None = None
        self._last: Position = {}

    # -- the run -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Open the file and start writing."""
        committed = None if self._from is None else int(self._from["bytes"])
        output = OutputFile(self.file.path, committed)
        try:
            self._format = self.file.writer(output, self.signals)
        except BaseException:
            output.close()
            raise
        self._thread = threading.Thread(target=self._write, name="xstream writer", daemon=True)
        self._thread.start()

    def end(self, outcome: Outcome) -> None:
        """Write the rest and give the file its final name, unless the run is to go on later."""
        if not self._over.is_set():
            self._outcome = outcome
        self._over.set()
        lib.xs_drain_close(self.drain)
        thread, self._thread = self._thread, None
        if thread is not None:
            self.wait_for(thread)
            if self.error is not None and outcome != "failed":
                raise self.error

    def wait_for(self, thread: threading.Thread) -> None:
        """Wait until the rest is written."""
        thread.join()

    def ask(self) -> None:
        """Begin to flush, so that several sinks do so at the same time."""
        if self._thread is not None and not self._asking:
            self._asking = True
            self._flushed.clear()
            self._asked.set()
            lib.xs_drain_wake(self.drain)

    def position(self) -> Position:
        """The length of the output on disk, after flushing all tuples so far."""
        self.ask()
        while self._thread is not None and not self._flushed.wait(0.05) and self.error is None:
            lib.xs_drain_wake(self.drain)
        self._asking = False
        if self.error is not None:
            raise self.error
        return self._last

    def restore(self, position: Position) -> None:
        """Cut the output back to a position and continue from there."""
        if position.get("bytes") is None:
            raise InputError(f"{self.file.path}: this format cannot be cut back and continued")
        self._from = position
        self.rows, self._stop = int(position["rows"]), position["stop"]

    # -- writing -----------------------------------------------------------------------------

    def _write(self) -> None:
        """The body of the thread, until the streams end."""
        assert self._format is not None
        try:
            while not lib.xs_drain_ended(self.drain):
                asked = self._asked.is_set()
                group = lib.xs_drain_take(self.drain, 0 if asked else _PATIENCE_NS)
                if group:
                    self._write_group(group)
                elif asked:
                    self._commit()
            self._over.wait()
            if self._outcome != "failed":
                self._commit()
            if self._outcome in ("done", "stopped"):
                self._format.finish()
            else:
                self._format.abort()
        except BaseException as error:
            self.error = self._described(error)
            lib.xs_drain_fail(self.drain)
            self._format.abort()

    def _commit(self) -> None:
        assert self._format is not None
        self._last = {"bytes": self._format.commit(), "rows": self.rows, "stop": self._stop}
        self._asked.clear()
        self._flushed.set()

    def _described(self, error: BaseException) -> BaseException:
        if isinstance(error, OSError):
            said = InputError(
                f"{self.file.path} cannot be written: {error.strerror or error}; what there is of "
                f"it is in {self.file.path.name}.part"
            )
            said.__cause__ = error
            return said
        return error

    def _write_group(self, group: Any) -> None:
        assert self._format is not None
        try:
            for columns in self._records(group) if self.signals.records else self._samples(group):
                self._format.write(columns)
                self.rows += len(columns[0])
        finally:
            lib.xs_group_drop(self.drain, group)

    def _records(self, group: Any) -> Iterator[Columns]:
        """Rows of scalars as columns."""
        width = len(self.schema)
        slots = np.frombuffer(ffi.buffer(group.slots, group.tuples * width * 8), np.int64)
        table = slots.reshape(group.tuples, width)
        columns = []
        for i, (type_, dtype) in enumerate(
            zip(self.schema.types, self.signals.dtypes, strict=True)
        ):
            is_float = isinstance(type_, Scalar) and type_.slot == "float64"
            values = table[:, i].view(np.float64) if is_float else table[:, i]
            columns.append(values.astype(dtype))
        yield columns

    def _samples(self, group: Any) -> Iterator[Columns]:
        """The samples of consecutive segments as columns; gaps are treated by the file's policy."""
        ranges = np.empty((2, len(self.schema), group.tuples), np.int64)
        for field in range(len(self.schema)):
            starts, widths = (
                ffi.cast("int64_t *", part[field].ctypes.data) for part in (ranges[0], ranges[1])
            )
            lib.xs_group_ranges(self.drain, group, field, starts, widths)
        starts, widths = ranges[0][0], ranges[1][0]
        if (ranges != ranges[:, :1]).any():
            raise InputError("the segments of a tuple cover different ranges of their signals")
        columns = [
            self._gathered(group, field, int(widths.sum())) for field in range(len(ranges[0]))
        ]
        yield from self._across_gaps(columns, starts, widths)

    def _gathered(self, group: Any, field: int, samples: int) -> npt.NDArray[Any]:
        column = np.empty(samples, self.signals.dtypes[field])
        lib.xs_group_gather(self.drain, group, field, ffi.cast("void *", column.ctypes.data))
        return column

    def _across_gaps(
        self, columns: Columns, starts: npt.NDArray[np.int64], widths: npt.NDArray[np.int64]
    ) -> Iterator[Columns]:
        nonempty = widths > 0
        starts, widths = starts[nonempty], widths[nonempty]
        if not len(starts):
            return
        first = int(starts[0]) if self._stop is None else self._stop
        gaps = starts - np.concatenate(([first], (starts + widths)[:-1]))
        self._stop = int(starts[-1] + widths[-1])
        if self.file.indexed:
            offsets = np.repeat(starts - np.cumsum(widths) + widths, widths)
            yield [offsets + np.arange(len(offsets)), *columns]
            return
        if self.file.gap == "join" or not gaps.any():
            yield columns
            return
        self._check_gaps(gaps, starts)
        at = 0
        for gap, cut in zip(gaps[gaps != 0], (np.cumsum(widths) - widths)[gaps != 0], strict=True):
            if cut > at:
                yield [column[at:cut] for column in columns]
            yield [missing(column.dtype, int(gap)) for column in columns]
            at = int(cut)
        yield [column[at:] for column in columns]

    def _check_gaps(self, gaps: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> None:
        wrong = gaps < 0 if self.file.gap == "fill" else gaps != 0
        if not wrong.any():
            return
        at = int(wrong.argmax())
        gap, start = int(gaps[at]), int(starts[at])
        kind = f"a gap of {gap}" if gap > 0 else f"an overlap of {-gap}"
        raise InputError(
            f"{self.file.path}: there is {kind} samples before sample {start}, and the file has no "
            "place for indices: gap='join' writes one segment behind the other, gap='fill' fills "
            "gaps"
        )
