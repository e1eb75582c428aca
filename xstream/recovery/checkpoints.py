"""`Checkpoints`: takes the checkpoints of a run, and puts a new run at the latest of them."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.assembly import Assembly
from xstream.engine.attachment import Resumable
from xstream.engine.schema import Segment
from xstream.errors import GraphError, InputError, SegmentMemoryError
from xstream.recovery.format import FORMAT, Front, Stored
from xstream.recovery.generations import Generations, Pending
from xstream.recovery.identity import check_identity, identity_of
from xstream.recovery.owners import Recoverable, check_functions, owners_of

__all__ = ["CheckpointStats", "Checkpoints"]

#: How long a run that ends at a signal waits for checkpoints. No last one is begun if the one
#: before took longer to write or to load than is left of that.
LAST_S = 1.0
_QUERY, _STATS = "query", "stats"


@dataclass
class CheckpointStats:
    """What the checkpoints of a run cost.

    `pause_s` are the seconds in which the query stood still, all and the longest; a checkpoint is
    written while it goes on (`longest_write_s`).

    >>> import tempfile
    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> out = query.source(xs.io.array(np.zeros(64), window=8)).count()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = query.run(checkpoint=f"{folder}/state", checkpoint_s=60.0)
    >>> run.checkpoints.count >= 0
    True
    """

    count: int = 0
    bytes: int = 0
    pause_s: float = 0.0
    longest_pause_s: float = 0.0
    longest_write_s: float = 0.0
    #: The number of the checkpoint that the run went on from, and how long it took to load.
    resumed_from: int | None = None
    load_s: float = 0.0
    #: Sentences about checkpoints that could not be used.
    damaged: list[str] = field(default_factory=list)


class Checkpoints:
    """The checkpoints of one run, in a folder of their own."""

    def __init__(self, folder: str | os.PathLike[str], every_s: float, resume: bool) -> None:
        self.every_s, self.stats = _interval(every_s), CheckpointStats()
        self._generations = Generations(Path(folder))
        self._resume = resume
        self._number = 0
        self._pending: Pending | None = None
        self._child = 0
        self._next_s = math.inf
        self._owners: dict[str, Recoverable] = {}
        self._identity: dict[str, Any] = {}
        self._encoded: NDArray[np.uint8] = np.empty(0, np.uint8)

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._generations.folder

    # -- before the run ----------------------------------------------------------------------

    def prepare(self, built: Assembly, tuple_burst: int | None) -> None:
        """Check that everything can be saved, and load the latest checkpoint to go on from."""
        check_functions(built.nodes)
        self._owners = owners_of(built.nodes)
        _check_operators(built)
        self._identity = {**identity_of(built.query), "tuple_burst": tuple_burst}
        self._encoded = np.frombuffer(json.dumps(self._identity).encode(), np.uint8)
        if not self._resume:
            self._generations.discard()
            return
        self._generations.remove_parts()
        begin = time.perf_counter()
        stored, self.stats.damaged = self._generations.latest(self._check)
        self._number = max(self._generations.numbers(), default=0)
        if stored is not None:
            _load(built, stored, self._owners)
            self.stats.resumed_from = stored.manifest["number"]
            self.stats.load_s = time.perf_counter() - begin

    def _check(self, stored: Stored) -> None:
        """Raise an InputError for a checkpoint of another query or version."""
        where, manifest = str(stored.path), stored.manifest
        if manifest.get("format") != FORMAT:
            raise InputError(f"{where} has format {manifest.get('format')!r}, not {FORMAT}")
        try:
            found = json.loads(stored.arrays[_QUERY].tobytes())
        except (KeyError, ValueError) as error:
            raise InputError(f"{where} does not say of which query it is") from error
        check_identity(found, self._identity, where)
        ours, theirs = self._identity["tuple_burst"], found.get("tuple_burst")
        if ours != theirs:
            raise InputError(f"{where} was taken with tuple_burst={theirs}, not {ours}")

    def begin(self, built: Assembly) -> None:
        """The run begins: sinks that cannot be cut back are refused."""
        for name, position in built.positions().items():
            if "bytes" in position and position["bytes"] is None:
                raise GraphError(
                    f"{name} cannot be part of a checkpoint: a file of this kind cannot be cut "
                    "back to what it held; write CSV, raw samples, WAV or NPY without compression"
                )
        self._next_s = time.perf_counter() + self.every_s

    # -- during the run ----------------------------------------------------------------------

    def due(self) -> bool:
        """Whether to take a checkpoint now."""
        return self._pending is None and time.perf_counter() >= self._next_s

    @property
    def wait_ns(self) -> int:
        """Nanoseconds until the next one is due."""
        return max(int(1e9 * min(self._next_s - time.perf_counter(), 1e6)), 0)

    def take(self, built: Assembly, began: float) -> None:
        """Take a checkpoint, while no operator runs since `began`; a child process writes it."""
        self.poll(wait=True)
        self._next_s = began + self.every_s
        if not lib.xs_plan_saves(built.plan.handle):
            return
        self._number += 1
        manifest, arrays = self._manifest(built)
        image = ffi.gc(lib.xs_image_new(), lib.xs_image_drop)
        if lib.xs_plan_save(built.plan.handle, image):
            raise SegmentMemoryError("no memory is left for a checkpoint")
        front = Front.of(manifest, lib.xs_image_length(image), arrays)
        try:
            self._pending = self._generations.begin(self._number)
            self._write(front, image)
        except OSError as error:
            raise self._failed(error.errno) from error
        pause = time.perf_counter() - began
        self.stats.pause_s += pause
        self.stats.longest_pause_s = max(self.stats.longest_pause_s, pause)
        self.stats.bytes += len(front.before) + len(front.after) + lib.xs_image_length(image) + 4

    def _manifest(self, built: Assembly) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        owners: dict[str, Any] = {}
        arrays: dict[str, NDArray[Any]] = {_QUERY: self._encoded, _STATS: built.counted()}
        for name, owner in self._owners.items():
            values = dict(owner.save_state())
            held = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
            arrays |= {f"{name}\0{key}": value for key, value in held.items()}
            owners[name] = {key: value for key, value in values.items() if key not in held}
        manifest = {
            "format": FORMAT, "number": self._number, "xstream": metadata.version("xstream"),
            "time": time.time(), "positions": built.positions(), "owners": owners,
        }  # fmt: skip
        return manifest, arrays

    def _write(self, front: Front, image: Any) -> None:
        """Write the file in a child process; here, if none can be started."""
        assert self._pending is not None
        before, after = ffi.from_buffer(front.before), ffi.from_buffer(front.after)
        around = ffi.new("xs_around *", (before, after, len(front.before), len(front.after)))
        self._child = int(lib.xs_image_write_in_child(image, around, self._pending.file))
        if self._child > 0:
            return
        self._child = 0
        self._ended(int(lib.xs_image_write(image, around, self._pending.file)))

    def poll(self, wait: bool = False) -> None:
        """Publish a checkpoint that has been written; raises an InputError if it failed."""
        if self._pending is None:
            return
        ended = int(lib.xs_image_written(self._child, wait))
        if ended >= 0:
            self._child = 0
            self._ended(ended)

    def _ended(self, error: int) -> None:
        assert self._pending is not None
        if error:
            raise self._failed(error)
        try:
            self._generations.publish(self._pending)
        except OSError as problem:
            raise self._failed(problem.errno) from problem
        self.stats.count += 1
        write_s = time.perf_counter() - self._pending.began
        self.stats.longest_write_s = max(self.stats.longest_write_s, write_s)
        self._pending = None

    def _failed(self, number: int | None) -> InputError:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._generations.give_up(pending)
        numbers = self._generations.numbers()
        left = (
            f"the one before, {self._generations.path(numbers[0]).name}, is whole: run again with "
            "resume once that is possible"
            if numbers else "there is none yet to resume from"
        )  # fmt: skip
        reason = os.strerror(number or errno.EIO)
        return InputError(f"a checkpoint in {self.folder} cannot be written: {reason}; {left}")

    # -- at the end --------------------------------------------------------------------------

    def take_last(self, built: Assembly) -> None:
        """Take a checkpoint at which the run ends, unless that would take too long.

        Then the one before serves, if there is one.
        """
        until = time.perf_counter() + LAST_S
        self._complete(until)
        if time.perf_counter() + max(self.stats.longest_write_s, self.stats.load_s) <= until:
            self.take(built, time.perf_counter())
            self._complete(until)

    def _complete(self, until: float) -> None:
        """Wait for a checkpoint that is being written; not longer, if there is one before it."""
        if not self._generations.numbers():
            self.poll(wait=True)
        while self._pending is not None and time.perf_counter() < until:
            self.poll()
            time.sleep(LAST_S / 100)
        if self._pending is not None:
            self._cancel()

    def _cancel(self) -> None:
        """End the child that writes, and remove what it has written."""
        pending, self._pending = self._pending, None
        assert pending is not None
        os.kill(self._child, signal.SIGKILL)
        lib.xs_image_written(self._child, True)
        self._child = 0
        self._generations.give_up(pending)

    def close(self) -> None:
        """Complete what is being written."""
        self.poll(wait=True)

    def abandon(self) -> None:
        """The run has failed: a checkpoint that is being written is completed all the same."""
        with suppress(InputError):
            self.poll(wait=True)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder."""
        self.abandon()
        self._generations.close()


def _interval(every_s: float) -> float:
    number = isinstance(every_s, int | float) and not isinstance(every_s, bool)
    if not number or not every_s > 0:
        raise GraphError(f"checkpoint_s is a positive number of seconds, not {every_s!r}")
    return float(every_s)


def _check_operators(built: Assembly) -> None:
    for node in built.nodes:
        op = built.ops[node.id]
        attachment = built.plan.attachment(op)
        if lib.xs_op_saves(op) or isinstance(attachment, Resumable):
            continue
        what = (
            "what it has read cannot be read again from a position"
            if not node.operator.ports else "its state cannot be saved"
        )  # fmt: skip
        raise GraphError(f"{node.name} cannot be part of a checkpoint: {what}")


# -- loading ---------------------------------------------------------------------------------


def _load(built: Assembly, stored: Stored, owners: Mapping[str, Recoverable]) -> None:
    """Put a run that has not begun where the checkpoint was taken."""
    _load_image(built, stored)
    manifest = stored.manifest
    try:
        built.earlier = _counters(stored.arrays[_STATS], len(built.nodes))
        positions, saved = dict(manifest["positions"]), dict(manifest["owners"])
        built.resume(positions)
        for name, owner in owners.items():
            values = dict(saved[name])
            prefix = f"{name}\0"
            for key, array in stored.arrays.items():
                if key.startswith(prefix):
                    values[key.removeprefix(prefix)] = array
            owner.load_state(values)
    except InputError as error:  # which is a ValueError
        raise InputError(f"{stored.path} cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{stored.path} cannot be used: {error!r} is missing or wrong") from error


def _counters(array: NDArray[Any], nodes: int) -> NDArray[np.int64]:
    if array.shape != (nodes, 5) or array.dtype != np.int64:
        raise ValueError("stats")
    return array


def _load_image(built: Assembly, stored: Stored) -> None:
    keep: list[Any] = []
    sizes = ffi.new("xs_sizes[]", len(built.nodes) or 1)
    for node in built.nodes:
        inputs = [built.query.schema_of(edge) for edge in node.inputs if edge is not None]
        flat = [
            type_.dtype.itemsize if isinstance(type_, Segment) else 0
            for schema in (inputs or node.outputs)
            for type_ in schema.types
        ]
        keep.append(ffi.new("int64_t[]", flat or 1))
        sizes[node.id] = (built.ops[node.id], keep[-1])
    failed = ffi.new("int32_t *")
    # Released at once: a memoryview that is exported when the cycles of an error are collected
    # crashes CPython 3.11.
    with ffi.from_buffer(stored.image) as image:
        wrong = lib.xs_plan_load(
            built.plan.handle, image, len(stored.image), sizes, len(built.nodes), failed
        )
    if wrong:
        named = [
            node.name for node in built.nodes if lib.xs_op_number(built.ops[node.id]) == failed[0]
        ]
        of = f", {named[0]}" if named else ""
        raise InputError(f"{stored.path}{of} cannot be loaded: {ffi.string(wrong).decode()}")
