"""Generated streams as files: RDF or records, by the suffix of the name."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xstream import InputError
from yabench.feed import writes
from yabench.stream import triple_line
from yabench.weather import Records, rdf_of

__all__ = ["read_records", "write_stream"]


def write_stream(records: Records, name: Path, part: Path) -> None:
    """Write a stream to `part` in the form that the suffix of `name` says."""
    suffixes = name.suffixes
    if suffixes[-1:] == [".arrow"]:
        import pyarrow.feather as feather

        feather.write_feather(records.table(), part, compression="uncompressed")
    elif suffixes[-1:] == [".parquet"]:
        import pyarrow.parquet as parquet

        parquet.write_table(records.table(), part)
    elif suffixes[:1] and suffixes[-1] in (".n3t", ".nt", ".jsonl", ".xz"):
        _write_text(records, suffixes, part)
    else:
        raise InputError(f"{name}: the suffix must be .n3t, .n3t.xz, .jsonl, .arrow or .parquet")


def _write_text(records: Records, suffixes: list[str], part: Path) -> None:
    opener: Callable[..., Any] = lzma.open if suffixes[-1] == ".xz" else open
    with opener(part, "wb") as file:
        if ".jsonl" in suffixes:
            for _, write in writes(records, "json", file):
                write()
            return
        for time, triples in rdf_of(records).items.items():
            file.write("".join(triple_line(each, time) + "\n" for each in triples).encode())


def read_records(path: Path) -> Records:
    """Read records that were written as .arrow or .parquet."""
    import numpy as np
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as parquet

            table = parquet.read_table(path)
        else:
            import pyarrow.feather as feather

            table = feather.read_table(path)
        time, station, observation = (
            np.asarray(table.column(name).to_numpy(), np.int64)
            for name in ("time", "station", "observation")
        )
        value = np.asarray(table.column("value").to_numpy(), np.float64)
    except (OSError, KeyError, pa.ArrowException, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not len(time) or (np.diff(time) < 0).any() or time[0] < 0:
        raise InputError(f"{path} must have records in order of time")
    return Records(time, station, observation, value)
