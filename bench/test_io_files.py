"""Files read into the engine, against their libraries; at a small size for `make bench`."""

from __future__ import annotations

from typing import Any

from bench.engine import add_figures, measured
from bench.report import Report
from xstream.bench.settings import Settings


def test_io_files_against_their_libraries(benchmark: Any, report: Report) -> None:
    from xstream.bench.files import files

    settings = Settings(megabytes=64, window=65_536, trials=5, clock="processor")
    found = measured(benchmark, files, settings)
    for title, columns, rows in found.tables:
        report.table(title, list(columns), [[str(cell) for cell in row] for row in rows])
    add_figures(report, found, "soundfile.read")
