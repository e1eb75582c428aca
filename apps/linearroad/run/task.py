"""One share of a run, as a task of a cluster: input from shared storage, answers to it.

It runs in a temporary folder of its machine. An attempt copies its results aside under a name of
its own; `commit` gives those of the winner their final name.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from linearroad.generation.layout import Layout
from linearroad.generation.manifest import (
    Entry,
    check_sizes,
    read_json,
    read_manifest,
    write_json,
)
from linearroad.output.digests import differences, read_digests
from linearroad.output.sink import RunResult
from linearroad.output.writers import RESULTS
from linearroad.run.copies import copies_of
from linearroad.run.job import Part, RunOptions, run
from linearroad.run.share import Share
from linearroad.run.shipment import Shipment
from linearroad.scratch import scratch
from linearroad.storage import is_remote, local_copy, make_folder, rename, upload
from linearroad.tables.history import load_history

__all__ = [
    "DIGESTS", "PROGRESS", "RESULT", "START", "STOP", "Job", "commit", "compare_share",
    "groups_folder", "hand_over", "run_share", "staged", "staged_history", "task_folder",
]  # fmt: skip

PROGRESS = "running"
POLL_S = 0.1
START = "start.json"
#: Appears when a share has a late answer and the run is to stop at the first.
STOP = "stop"
RESULT = "result.json"
DIGESTS = "digests.parquet"
#: Files of which storage has one per expressway and history.
STORED = ("segment_sums.npy", "toll_vids.npy", "tolls.npy")


@dataclass(frozen=True)
class Job:
    """What all shares of a run have in common."""

    source: Path
    out: Path
    history: Path | None
    tolls: Path | None
    segments: Path | None
    options: RunOptions

    @property
    def work(self) -> Path:
        """The folder for what is not complete."""
        return Layout(self.out).work


def groups_folder(out: Path) -> Path:
    """The folder with the results of each share."""
    return out / "groups"


def task_folder() -> Path:
    """Where a task may keep files: in the folders of its executor, which Spark removes."""
    for name in ("SPARK_EXECUTOR_DIRS", "LOCAL_DIRS", "SPARK_LOCAL_DIRS"):
        first = Path(re.split(r"[:,]", os.environ.get(name, ""))[0] or "/nowhere")
        if first.is_dir() and os.access(first, os.W_OK):
            return first
    return Path(tempfile.gettempdir())


def run_share(job: Job, share: Share) -> Entry:
    """Run a share from its latest point, if there is one; returns its figures."""
    began = time.time()
    with scratch(task_folder(), "xstream-run-") as room:
        out = room.folder / "out"
        out.mkdir()
        source = staged(job.source, share, room.folder)
        state = _staged_state(job.options.from_state, room.folder)
        options = replace(job.options, resume=True, from_state=state)
        names = {"rejects": "rejects.csv"}
        if options.answers != "digest":
            names["answers"] = f"output.{options.form}"
        attempt = uuid.uuid4().hex[:12]
        shipment = Shipment(job.work / share.name, out, attempt, names)
        shipment.fetch()
        past = staged_history(job, share, room.folder)
        part = Part(share, lambda: _common_start(job, share))
        progress = _Noted(job, share, part)
        with shipment.shipping():
            result = run(source, out, past, options, progress, part)
        if options.stop_when_late and result.first_late:
            (job.work / STOP).write_bytes(b"")
        entry = _figures(share, result, part, began) | {
            "attempt": attempt, "summary": read_json(out / "summary.json"),
        }  # fmt: skip
        aside = shipment.place / attempt / "results"
        for name in RESULTS:
            if (out / name).is_file():
                hand_over(out / name, aside / name)
        write_json(aside / RESULT, entry)
        return _small(entry)


def hand_over(source: Path, target: Path) -> None:
    """Move a local file to shared storage; a copy, unless that is the same disk."""
    make_folder(target.parent)
    if not is_remote(target):
        with suppress(OSError):
            source.replace(target)
            return
    upload(source, target)


def _small(entry: Entry) -> Entry:
    """What the driver needs to know of a share at once."""
    return {name: entry[name] for name in ("number", "attempt")}


def _figures(share: Share, result: RunResult, part: Part, began: float) -> Entry:
    counts: Any = part.delays.pop("counts")
    place = np.flatnonzero(counts)
    return {
        "number": share.number, "expressways": share.expressways, "began": began,
        "ended": time.time(), "copies_differ": result.copies_differ,
        "first_differences": result.first_differences, "delays": part.delays,
        "delay_counts": [place.tolist(), counts.reshape(-1)[place].tolist()],
    }  # fmt: skip


class _Noted:
    """Notes the progress of a share on shared storage, for display only. Stops the share if another
    one says that the run is to stop."""

    EVERY_S = 2.0

    def __init__(self, job: Job, share: Share, part: Part) -> None:
        self._path = Layout(job.out).progress(PROGRESS, share.number)
        self._stop = job.work / STOP if job.options.stop_when_late else None
        self._part, self._next = part, 0.0

    def __call__(self, result: RunResult) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self.EVERY_S
        with suppress(OSError):
            if self._stop is not None and self._stop.is_file():
                self._part.stop.set()
            self._path.unlink(missing_ok=True)  # may be of an earlier attempt of another user
            self._path.write_text(str(max(result.stream_seconds, 0)))


def _common_start(job: Job, share: Share) -> float:
    """Say that the share is ready, and wait for the start of all shares, if it is a paced run."""
    if job.options.speed is None:
        return 0.0
    (job.work / f"ready-{share.number:05d}").write_bytes(b"")
    start = job.work / START
    while not start.is_file():
        time.sleep(POLL_S)
    at = float(read_json(start)["at"])
    while (left := at - time.time()) > 0:
        time.sleep(min(left, POLL_S))
    return time.time() - at


# -- input ---------------------------------------------------------------------------------------


def staged(source: Path, share: Share, folder: Path) -> Path:
    """The directory of the input on this machine: itself, or copies of what the share needs."""
    if not is_remote(source):
        return source
    manifest = read_manifest(source)
    check_sizes(source, [manifest["traffic"][number] for number in share.numbers])
    there, here = Layout(source), Layout(folder / "input")
    for number in share.numbers:
        path = here.traffic(number, manifest["parameters"]["format"])
        path.parent.mkdir(parents=True, exist_ok=True)
        local_copy(there.traffic(number, manifest["parameters"]["format"]), path.parent)
    local_copy(there.manifest, here.root)
    return here.root


def _staged_state(state: Path | None, folder: Path) -> Path | None:
    """A saved state on this machine."""
    if state is None or not is_remote(state):
        return state
    here = folder / "state"
    here.mkdir()
    for path in state.iterdir():
        local_copy(path, here)
    return here


def staged_history(job: Job, share: Share, folder: Path) -> Any:
    """The history of a share, from copies of its files if they are on other storage."""
    history = job.history
    if history is not None and is_remote(history):
        there, here = Layout(history), Layout(folder / "history")
        for number in share.numbers:
            here.store(number).mkdir(parents=True)
            for name in STORED:
                local_copy(there.store(number) / name, here.store(number))
        local_copy(there.manifest, here.root)
        history = here.root
    tolls = None if job.tolls is None else local_copy(job.tolls, folder)
    segments = None if job.segments is None else local_copy(job.segments, folder)
    return load_history(history, tolls, segments, xways=share.numbers)


# -- results -------------------------------------------------------------------------------------


def commit(job: Job, entry: Entry) -> None:
    """Give the results of the winning attempt their final name. May be repeated."""
    name = f"group-{entry['number']:05d}"
    aside = job.work / name / entry["attempt"] / "results"
    final = groups_folder(job.out) / name
    make_folder(final)
    listed = sorted(aside.iterdir(), key=lambda path: path.name == RESULT)
    for path in listed:  # the result comes last: it says that the others are there
        rename(path, final / path.name)


def compare_share(job: Job, share: Share) -> tuple[int, list[str]]:
    """Compare the digests of copies with those of the originals, which are in the first share."""
    first = groups_folder(job.out) / Share(0, 0, 1).name
    own = groups_folder(job.out) / share.name
    copies = share.of(copies_of(job.source, job.options.expressways))
    minutes = _minutes(job)
    begin = copies[0].xway_by + share.first_file
    reference = read_digests(first / DIGESTS, share.files, minutes, share.first_file)
    found = read_digests(own / DIGESTS, share.expressways, minutes, begin)
    wrong, described = differences(found, reference, first_expressway=begin)
    return wrong, [difference.sentence() for difference in described]


def _minutes(job: Job) -> int:
    parameters = read_manifest(job.source)["parameters"]
    known = [int(parameters["minutes"])] if "minutes" in parameters else []
    if job.options.minutes is not None:
        known.append(job.options.minutes)
    return min(known)
