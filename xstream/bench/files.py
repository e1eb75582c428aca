"""Reading files into the engine, beside the libraries' own reading into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xstream import io
from xstream.bench._resident import ResidentPeak
from xstream.bench.queries import Engine
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.trials import Stopwatch, Trial, interleave
from xstream.console import require_package
from xstream.query import Query, SinkRef
from xstream.stream import Stream

__all__ = ["files"]

RATE_HZ = 44_100
#: A CSV file has a part of the samples: text takes longer.
CSV_SHARE = 8
#: How much longer the input is that memory is measured with.
LONGER = 10


def _read_wav(path: Path) -> Any:
    import soundfile

    return soundfile.read(path, dtype="float32")


def _read_parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path)


def _unverified_parquet(path: Path, **options: Any) -> Any:
    return io.parquet(path, checksums=False, **options)


def _read_csv(path: Path) -> Any:
    import pyarrow.csv as pc

    return pc.read_csv(path)


def _mapped_sum(path: Path) -> Any:
    return np.load(path, mmap_mode="r").sum()


def _samples(stream: Stream) -> SinkRef:
    return stream.count()


def _means(stream: Stream) -> SinkRef:
    """Collected, because a mean that nobody looks at need not be computed."""
    return stream.mean().collect()


@dataclass(frozen=True)
class Format:
    """A format: its file, what the engine does with it, and what it is compared with."""

    name: str
    file: Callable[..., Any]
    work: Callable[[Stream], SinkRef]
    library: str
    by_library: Callable[[Path], Any]
    share: int = 1

    def path(self, folder: Path) -> Path:
        """Where its file is."""
        return folder / f"recording.{self.name}"

    def write(self, folder: Path, samples: npt.NDArray[np.float32]) -> None:
        """Make the file."""
        query = Query("files")
        part = samples[: len(samples) // self.share]
        query.source(io.array(part, RATE_HZ)).write(self.file(self.path(folder)))
        query.run().uninterrupted()

    def engine_trial(self, engine: Engine, folder: Path, window: int, clock: str) -> Trial:
        """Open the file, read it into the engine and do the work."""
        query = Query("files")
        with Stopwatch() as watch:
            stream = query.source(self.file(self.path(folder), window=window), name="in")
            out = self.work(stream)
            run, _ = engine.timed_run(query)
            found = run[out]
        if isinstance(found, list) and not all(abs(mean) < 1.0 for mean in found):
            raise AssertionError(f"{self.name}: a mean of noise is not {max(found)}")
        return watch.trial(run.stats["in"].samples, clock)

    def library_trial(self, folder: Path, samples: int, clock: str) -> Trial:
        """The same file by the library alone."""
        with Stopwatch() as watch:
            self.by_library(self.path(folder))
        return watch.trial(samples, clock)


FORMATS = (
    Format("wav", io.wav, _samples, "soundfile.read", _read_wav),
    Format("parquet", io.parquet, _samples, "pyarrow.parquet.read_table", _read_parquet),
    Format(
        "unverified.parquet",
        _unverified_parquet,
        _samples,
        "the same, without checksums",
        _read_parquet,
    ),
    Format("npy", io.npy, _means, "sum of the mapped array", _mapped_sum),
    Format("csv", io.csv, _samples, "pyarrow.csv.read_csv", _read_csv, CSV_SHARE),
)


def _recording(megabytes: float) -> npt.NDArray[np.float32]:
    count = max(int(megabytes * 1e6) // 4, 1 << 16)
    noise = np.random.default_rng(6).normal(0.0, 0.1, min(count, 1 << 22)).astype(np.float32)
    return np.resize(noise, count)


def _contenders(
    settings: Settings, folder: Path, samples: int
) -> Iterator[tuple[str, Callable[[], Trial]]]:
    for each in FORMATS:
        part = samples // each.share

        def engine(each: Format = each) -> Trial:
            return each.engine_trial(settings.engine, folder, settings.window, settings.clock)

        def library(each: Format = each, part: int = part) -> Trial:
            return each.library_trial(folder, part, settings.clock)

        if engine().samples != part:
            raise AssertionError(f"{each.name}: not all of {part:,} samples were read")
        yield f"xstream, {each.name}", engine
        yield f"{each.library}, {each.name}", library


def _peak_bytes(each: Format, settings: Settings, folder: Path) -> tuple[int, int]:
    """The most memory of the process during a run, and what of it the run added."""
    peak = ResidentPeak()
    each.engine_trial(settings.engine, folder, settings.window, "wall")
    grown = peak.grown()
    return peak.before + grown, grown


def _memory(settings: Settings, folder: Path) -> list[tuple[str, float, float, float]]:
    """By format: megabytes that a run adds, those of a longer input, and the process's ratio."""
    rows = []
    longer = replace(settings, megabytes=settings.megabytes / LONGER)
    small = _recording(longer.megabytes)
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        for each in FORMATS:
            each.write(Path(inner), small)
            _peak_bytes(each, settings, Path(inner))
            peak, grown = _peak_bytes(each, settings, Path(inner))
            longer_peak, longer_grown = _peak_bytes(each, settings, folder)
            rows.append((each.name, grown / 1e6, longer_grown / 1e6, longer_peak / peak))
    return rows


def files(settings: Settings) -> Report:
    """Read files into the engine: throughput against the libraries, and memory."""
    require_package("soundfile")
    samples = _recording(settings.megabytes)
    with tempfile.TemporaryDirectory(prefix="xstream-files-") as scratch:
        folder = Path(scratch)
        for each in FORMATS:
            each.write(folder, samples)
        contenders = dict(_contenders(settings, folder, len(samples)))
        count = len(samples)
        del samples
        memory = _memory(settings, folder)
        results = interleave(contenders, settings.trials, settings.progress)
    report = Report("io", {**settings.to_json(), "samples": count}, list(results.values()))
    report.checked = "the number of samples that were read"
    for each in FORMATS:
        ours = results[f"xstream, {each.name}"].samples_per_second
        theirs = results[f"{each.library}, {each.name}"].samples_per_second
        report.figures.append(
            Figure(f"{each.name}, of {each.library}", ours / theirs, "times", floor=0.9)
        )
    for name, _, _, ratio in memory:
        report.figures.append(
            Figure(f"{name}, memory at {LONGER} times the input", ratio, "times", ceiling=1.1)
        )
    columns = ("format", "MB added", f"MB added at {LONGER} times the input", "process, ratio")
    shown = [(name, f"{a:.1f}", f"{b:.1f}", f"{ratio:.3f}") for name, a, b, ratio in memory]
    report.tables.append(("Memory", columns, shown))
    return report
