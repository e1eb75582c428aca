"""The row "file loading" of Table I: reading the recording from a CSV file (section IV.A)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream import io
from xstream.bench.queries import Engine, joined
from xstream.bench.recording import read_recording, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import Stopwatch, Trial, interleave
from xstream.query import Query
from xstream.stream import Stream

__all__ = ["PAPERS_SECONDS", "loading"]

#: Commercial, Borealis, XStream, XStream without segments.
PAPERS_SECONDS = (4.2, 8.1, 0.2, 2.24)
_SEGMENTS = "xstream, segments"
_SAMPLES_A_TUPLE = "NoSigSeg, one tuple per sample"
_ARROW = "pyarrow.csv, into memory"


@dataclass(frozen=True, slots=True)
class CsvRecording:
    """A recording in a CSV file of one column, and what must be read from it."""

    path: Path
    samples: npt.NDArray[np.float32]
    rate_hz: float
    window: int

    def source(self, query: Query, segments: bool) -> Stream:
        """The file as windows, or line by line."""
        how: dict[str, Any] = {} if segments else {"layout": "rows"}
        file = io.csv(
            self.path, self.rate_hz if segments else None, self.window, header=False,
            dtype=np.float32, **how,
        )  # fmt: skip
        return query.source(file)

    def check(self, engine: Engine, segments: bool) -> None:
        """An error where the samples that are read are not the recording's."""
        query = Query("loading")
        out = self.source(query, segments).collect()
        rows = engine.run(query)[out]
        found = joined(rows) if segments else np.array(rows, np.float32)
        if not np.array_equal(found, self.samples):
            raise AssertionError(f"{len(found):,} samples of {self.path} are not the recording's")

    def contender(self, engine: Engine, segments: bool) -> Callable[[], Trial]:
        """A trial that reads the file once."""
        self.check(engine, segments)

        def trial() -> Trial:
            query = Query("loading")
            out = self.source(query, segments).count()
            run, took = engine.timed_run(query)
            count = run[out]
            if (count.samples if segments else count) != len(self.samples):
                raise AssertionError(f"{count!r} samples were read, not {len(self.samples):,}")
            # Opening the file, before the run, is part of reading it.
            seconds = took.seconds + took.loading_seconds
            return replace(took, samples=len(self.samples), seconds=seconds)

        return trial

    def by_arrow(self, clock: str) -> Trial:
        """The library's own reading of the whole file, in one thread as ours."""
        import pyarrow as pa
        from pyarrow import csv

        with Stopwatch() as watch:
            table = csv.read_csv(
                self.path,
                csv.ReadOptions(column_names=["value"], use_threads=False),
                convert_options=csv.ConvertOptions(column_types={"value": pa.float32()}),
            )
        if table.num_rows != len(self.samples):
            raise AssertionError(f"pyarrow read {table.num_rows:,} rows of {self.path}")
        return watch.trial(table.num_rows, clock)


def loading(settings: Settings) -> Report:
    """Read the recording from a CSV file: as segments, one tuple per sample, and with pyarrow."""
    samples, rate_hz = read_recording(settings.input)
    recording = whole_windows(samples, settings.window)
    with tempfile.TemporaryDirectory(prefix="xstream-loading-") as folder:
        path = Path(folder, "recording.csv")
        # Nine digits tell every float32 from its neighbours.
        path.write_text("".join(f"{sample:.9g}\n" for sample in recording.tolist()))
        file = CsvRecording(path, recording, rate_hz, settings.window)
        contenders = {
            _SEGMENTS: file.contender(settings.engine, segments=True),
            _SAMPLES_A_TUPLE: file.contender(settings.engine, segments=False),
            _ARROW: lambda: file.by_arrow(settings.clock),
        }
        results = interleave(contenders, settings.trials, settings.progress)
    report = Report("loading", settings.to_json(), list(results.values()))
    report.checked = "every sample that was read, and their number in each trial"
    seconds = {name: result.best.seconds for name, result in results.items()}
    of_arrow = seconds[_ARROW] / seconds[_SEGMENTS]
    report.figures = [
        Figure("segments", seconds[_SEGMENTS], "s (paper 0.2)"),
        Figure("one tuple per sample", seconds[_SAMPLES_A_TUPLE], "s (paper 2.24)"),
        Figure("segments, of pyarrow's own reading", of_arrow, "times", floor=0.8),
    ]
    return report
