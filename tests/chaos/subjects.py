"""What is killed: a signal query, and Linear Road over one file, several files, and copies."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import xstream as xs

__all__ = ["CHECKPOINTS", "Subject", "linear_road_subjects", "signal_subject"]

#: The folder of checkpoints in that of a run.
CHECKPOINTS = "checkpoints"

#: Runs in a folder, and goes on from its checkpoints if there are any; what it has written.
Run = Callable[[Path, bool], None]
Output = Callable[[Path], Any]


@dataclass(frozen=True)
class Subject:
    """Something that can be killed and run on; its outputs are compared."""

    name: str
    run: Run
    output: Output


# -- a signal query --------------------------------------------------------------------------

SAMPLES = np.cumsum(np.random.default_rng(18).normal(size=4_000_000)).astype(np.float32)
#: How often they are read: a run is to last for many checkpoints.
REPEATED = 8
#: Seconds between two checkpoints: the shortest time in which one can be written.
EVERY_S = 0.02


@xs.kernel(state=np.zeros(1))
def total(window, state):  # type: ignore[no-untyped-def]
    state[0] += window.sum()
    return state[0]


@xs.kernel
def count_down(number):  # type: ignore[no-untyped-def]
    return number - 1


@xs.kernel
def positive(number):  # type: ignore[no-untyped-def]
    return number > 0


@xs.kernel
def level(window):  # type: ignore[no-untyped-def]
    return int(abs(window.sum())) % 5


def signal_query(folder: Path) -> xs.Query:
    """Windows that overlap, ranges cut out of two streams, and a cycle; written to three files."""
    q = xs.Query("chaos")
    src = q.source(xs.io.array(SAMPLES, rate_hz=1000.0, window=500, repeat=REPEATED))
    windows = src.rewindow(700, gap=-130)
    windows.map(total).write(xs.io.csv(folder / "totals.csv"))
    found = src.threshold(20.0).sync(src, src.fir([0.5, 0.5]))
    first = found.select(found.schema.fields[0].name)
    first.map(total).write(xs.io.csv(folder / "found.csv"))
    back = q.feedback(int)
    numbers = windows.map(level).merge(back)
    q.connect(back, numbers.map(count_down).filter(positive))
    numbers.write(xs.io.csv(folder / "numbers.csv"))
    return q


def run_signal(folder: Path, resume: bool) -> None:
    signal_query(folder).run(
        tuple_burst=4, checkpoint=folder / CHECKPOINTS, checkpoint_s=EVERY_S, resume=resume
    )


def files_of(*names: str) -> Output:
    return lambda folder: {name: (folder / name).read_bytes() for name in names}


def signal_subject() -> Subject:
    return Subject("signal", run_signal, files_of("totals.csv", "found.csv", "numbers.csv"))


# -- Linear Road -----------------------------------------------------------------------------


@contextmanager
def quietly() -> Iterator[None]:
    """Without messages on the terminal."""
    with open(os.devnull, "w") as nowhere:
        kept = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _run(source: Path, history: Path | None, **options: Any) -> Run:
    from linearroad.run.job import RunOptions, run
    from linearroad.tables.history import load_history

    known = load_history(history, None, None)

    def once(folder: Path, resume: bool) -> None:
        run(source, folder, known, RunOptions(checkpoint_s=EVERY_S, resume=resume, **options))

    return once


def _answers(folder: Path) -> Any:
    summary = json.loads((folder / "summary.json").read_text())
    figures = ("rows", "reports", "requests", "answers", "rejects", "implausible_speeds")
    rejects = sorted((folder / "rejects.csv").read_bytes().splitlines())
    return {
        "output": (folder / "output.csv").read_bytes(), "rejects": rejects,
        "figures": {name: summary[name] for name in figures},
    }  # fmt: skip


def _parquet_answers(folder: Path) -> Any:
    table = pq.read_table(folder / "output.parquet", page_checksum_verification=True)
    return table.combine_chunks()


def _digests(folder: Path) -> Any:
    summary = json.loads((folder / "summary.json").read_text())
    figures = ("rows", "reports", "requests", "answers", "copies_differ")
    return {
        "digests": pq.read_table(folder / "digests.parquet").to_pydict(),
        "figures": {name: summary[name] for name in figures},
    }


def flat_file(traffic: Path, path: Path, minutes: int) -> None:
    """The rows of one expressway as a flat file, with a bad one now and then."""
    from linearroad.input import open_input

    chance = random.Random(4)
    with path.open("w") as file:
        for chunk in open_input(traffic)[0].chunks():
            rows = np.stack(chunk.columns, axis=1)
            for row in rows[chunk.times < 60 * minutes].tolist():
                if chance.random() < 1e-4:
                    file.write("no row at all\n")
                if chance.random() < 1e-4:
                    row[1] = -5
                file.write(",".join(map(str, row)) + "\n")
            if chunk.times[-1] >= 60 * minutes:
                return


def linear_road_subjects(traffic: Path, scratch: Path, minutes: int = 12) -> list[Subject]:
    """Over generated traffic with history: one flat file, all of its files, and copies of them."""
    flat = scratch / "rows.csv"
    flat_file(traffic, flat, minutes)
    many = {"minutes": minutes}
    return [
        Subject("one file", _run(flat, None), _answers),
        Subject("Parquet answers", _run(flat, None, form="parquet"), _parquet_answers),
        Subject("several files", _run(traffic, traffic, **many), _answers),
        Subject("two threads", _run(traffic, traffic, threads=2, **many), _answers),
        Subject(
            "copies",
            _run(traffic, traffic, answers="digest", expressways=copies_of(traffic), **many),
            _digests,
        ),
    ]  # fmt: skip


def copies_of(traffic: Path) -> int:
    from linearroad.generation.manifest import read_manifest

    return 2 * int(read_manifest(traffic)["parameters"]["expressways"])
