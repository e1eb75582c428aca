"""YABench's own published results, as a reference beside those of a benchmark."""

from __future__ import annotations

import re
import tarfile
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from xstream import InputError

__all__ = ["Reference", "read_published"]

_NAME = re.compile(
    r"(?P<experiment>Experiment_\d)/(?P<engine>\w+)/results/(oracle/)?ORACLE_(?P<run>\S+)"
)
_ENGINES = {"csparql": "C-SPARQL", "cqels": "CQELS"}
MOST_BYTES = 2**20


class Reference(NamedTuple):
    """Means over all windows and runs of one published test."""

    engine: str
    precision: float
    recall: float
    delay_ms: float


def read_published(path: Path) -> dict[str, list[Reference]]:
    """Return the published results by test, such as `Experiment_1/small`."""
    rows: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                found = _NAME.fullmatch(member.name)
                file = archive.extractfile(member) if found and member.isfile() else None
                if found is None or file is None or member.size > MOST_BYTES:
                    continue
                test, gracious = re.sub(r"\d+$", "", found["run"]), found["run"] == "gracious"
                name = f"{found['experiment']}/{test}"
                if "gracious" in test:
                    name = found["experiment"]
                engine = _ENGINES.get(found["engine"], found["engine"])
                lines = file.read().decode().split()
                key = (name, engine + (", gracious" if gracious else ""))
                rows[key] += [[float(cell) for cell in line.split(",")] for line in lines]
    except (OSError, tarfile.TarError, ValueError) as error:
        raise InputError(f"{path} cannot be read as published results: {error}") from error
    references: dict[str, list[Reference]] = defaultdict(list)
    for (name, engine), lines_ in sorted(rows.items()):
        columns = list(zip(*lines_, strict=False))
        references[name].append(
            Reference(engine, mean(columns[0]), mean(columns[1]), mean(columns[7]))
        )
    return dict(references)
