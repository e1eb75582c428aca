"""The answers of a run or of any other system, in the columns that are compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from linearroad.generation.manifest import read_json
from linearroad.spark import run_tasks
from linearroad.validation.flat import FILE_BITS, blocks_of, split_lines, write_answers, written
from linearroad.validation.tables import Frame, Workshop, place_of, require_columns
from xstream.errors import InputError

__all__ = [
    "LIMITS_S",
    "RULES",
    "TYPES",
    "Run",
    "emits_differ",
    "read_answers",
    "read_run",
]

TYPES = ("toll notifications", "accident alerts", "balances", "expenditures", "travel times")
LIMITS_S = (5, 5, 5, 10, 30)
RULES = ("paper", "brandeis", "walmart", "thesis")
COLUMNS = (
    "type", "time", "emit", "vid", "qid", "lav", "toll", "seg", "resulttime", "bal", "traveltime",
)  # fmt: skip
# docs/linear-road-rules.md, section 4.1, type by type: the fields of a line with the
# time, the emit, and the values that are compared.
FIELDS = {
    0: (6, {"key": 1, "time": 2, "emit": 3, "value": 4, "amount": 5}),
    1: (5, {"time": 1, "emit": 2, "key": 3, "value": 4}),
    2: (6, {"time": 1, "emit": 2, "value": 3, "key": 4, "amount": 5}),
    3: (5, {"time": 1, "emit": 2, "key": 3, "amount": 4}),
    4: (6, {"time": 1, "emit": 2, "key": 3, "value": 4, "amount": 5}),
}
# Answers that are what a system writes without a fault; other files are read field by field.
_I, _E = r",-?[0-9]{1,15}", r",-?[0-9]{1,12}(\.[0-9]{1,9})?"
FLAWLESS = rf"\A(0{_I}{_I}{_E}{_I}{_I}|[13]{_I}{_E}{_I}{_I}|[24]{_I}{_E}{_I}{_I}{_I})\z"
TYPED = pa.schema([
    ("type", pa.int8()), ("time", pa.int32()), ("emit_ms", pa.int64()), ("key", pa.int32()),
    ("value", pa.int32()), ("amount", pa.int64()), ("place", pa.int64()),
    ("malformed", pa.string()),
])  # fmt: skip
PATTERN = r"\A[0-4](,-?[0-9]+(\.[0-9]+)?)+\z"
_MOST = 2**31 - 1
KEY = "CASE WHEN type IN (0, 1) THEN vid ELSE qid END"
VALUE = """CASE type WHEN 0 THEN lav WHEN 1 THEN seg WHEN 2 THEN resulttime WHEN 3 THEN 0
           ELSE traveltime END"""
AMOUNT = "CASE WHEN type IN (0, 4) THEN toll WHEN type = 1 THEN 0L ELSE bal END"


@dataclass(frozen=True)
class Run:
    """Answers to be judged: of a run with its summary, or one file of any system."""

    directory: Path  # where the verdict is written
    files: tuple[Path, ...]  # one, or that of each group of a run on a cluster
    summary: dict[str, Any]

    @property
    def answers(self) -> Path:
        """The only file."""
        if len(self.files) > 1:
            raise InputError(
                f"{self.directory} has answers of {len(self.files):,} groups, which can be "
                f"validated by the rules {', '.join(RULES[:3])} only"
            )
        return self.files[0]

    @property
    def timed(self) -> bool | None:
        """Whether Emit is meaningful; None if that depends on the answers (`emits_differ`)."""
        if not self.summary:
            return None
        return bool(self.summary.get("speed", "max") != "max")

    @property
    def ordered(self) -> bool:
        """Whether the answers must be in order of time, as `run` writes them."""
        return "rows_by_type" in self.summary

    @property
    def interrupted_at(self) -> int | None:
        """The second in which an interrupted run stopped; it may be half answered."""
        if not self.summary.get("interrupted"):
            return None
        return int(self.summary.get("stream_seconds", 0))


def read_run(output: Path) -> Run:
    """A run's directory, or a file of answers; raises an error that names what is missing."""
    if output.is_file():
        return Run(output.parent, (output,), {})
    if not output.is_dir():
        raise InputError(f"{output} does not exist")
    summary = output / "summary.json"
    found = _files_of(output)
    if not summary.is_file():
        name = found[0] if found else output / "output.csv"
        raise InputError(
            f"{output} has no summary.json: the run has not finished, or was killed, and its "
            f"answers are incomplete; answers of another system are judged by --output {name}"
        )
    if not found:
        raise InputError(f"{output} has neither output.csv nor output.parquet")
    told = read_json(summary)
    # A directory that was used twice contains both; the later file belongs to the summary.
    answers = found if "groups" in told else [max(found, key=lambda path: path.stat().st_mtime_ns)]
    if len(answers) == 1 and answers[0].suffix == ".csv" and not _ends_with_a_line(answers[0]):
        raise InputError(f"{answers[0]} ends within a line: it is incomplete")
    return Run(output, tuple(answers), told)


def _files_of(output: Path) -> list[Path]:
    """The files of answers: of a run, or of the groups of a run on a cluster."""
    forms = ("csv", "parquet")
    found = [path for form in forms if (path := output / f"output.{form}").is_file()]
    if found:
        return found
    grouped = (output / "groups").glob("group-*/output.*")
    return sorted(path for path in grouped if path.suffix[1:] in forms)


def emits_differ(shop: Workshop, answers: Frame) -> bool:
    """Whether any Emit is not its Time: where all are equal, a system has not been timed."""
    return not answers.where("malformed IS NULL AND emit_ms <> 1000L * time").isEmpty()


def _ends_with_a_line(path: Path) -> bool:
    """Whether the last line is complete; a truncated line may look like a shorter answer."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_answers(shop: Workshop, run: Run) -> Frame:
    """`type, time, emit_ms, key, value, amount, place, malformed` (the text of an invalid row)."""
    form = run.files[0].suffix
    frame = _of_parquet(shop, run.files) if form == ".parquet" else _of_flat(shop, run.files)
    if run.interrupted_at is not None:
        frame = frame.where(f"time IS NULL OR time < {run.interrupted_at}")
    return frame


def _of_parquet(shop: Workshop, paths: Sequence[Path]) -> Frame:
    require_columns(paths[0], COLUMNS)
    table = shop.read(*paths)
    wanted = table.selectExpr(
        "try_cast(type AS tinyint) AS type", "time",
        "try_cast(round(emit * 1000) AS bigint) AS emit_ms",
        f"{KEY} AS key", f"{VALUE} AS value", f"{AMOUNT} AS amount",
        f"_metadata.row_index + {place_of(paths)} AS place",
        f"to_json(struct({', '.join(COLUMNS)})) AS text",
    )  # fmt: skip
    whole = """coalesce(type BETWEEN 0 AND 4, false) AND time IS NOT NULL AND emit_ms IS NOT NULL
               AND key IS NOT NULL AND value IS NOT NULL AND amount IS NOT NULL"""
    return wanted.selectExpr("*", f"IF({whole}, NULL, text) AS malformed").drop("text")


def _of_flat(shop: Workshop, paths: Sequence[Path]) -> Frame:
    """Lines as in docs/linear-road-rules.md, section 4.1, kept as Parquet for several passes."""
    folder, numbered = shop.subfolder("answers"), list(enumerate(paths))
    if all(run_tasks(shop.spark, partial(_flawless_file, folder / "flawless"), numbered)):
        return shop.read(folder / "flawless")
    if any(run_tasks(shop.spark, partial(_cut_off, len(paths) > 1), list(paths))):
        raise InputError(f"answers below {paths[0].parent.parent} end within a line")
    run_tasks(shop.spark, partial(_fields_file, folder / "fields"), numbered)

    def field(name: str) -> str:
        places = {kind: at[name] for kind, (_, at) in FIELDS.items() if name in at}
        cases = " ".join(f"WHEN {kind} THEN f{at}" for kind, at in places.items())
        return f"CASE kind {cases} WHEN kind THEN '0' END"

    typed = shop.read(folder / "fields").selectExpr(
        "kind AS type",
        f"try_cast({field('time')} AS int) AS time",
        f"try_cast(round(try_cast({field('emit')} AS double) * 1000) AS bigint) AS emit_ms",
        f"try_cast({field('key')} AS int) AS key",
        f"try_cast({field('value')} AS int) AS value",
        f"try_cast({field('amount')} AS bigint) AS amount",
        "place", "coalesce(line, concat_ws(',', f0, f1, f2, f3, f4, f5)) AS line",
    )  # fmt: skip
    whole = " AND ".join(f"{name} IS NOT NULL" for name in ("type", "time", "emit_ms", "key",
                                                            "value", "amount"))  # fmt: skip
    frame = typed.selectExpr("*", f"IF({whole}, NULL, line) AS malformed").drop("line")
    return shop.keep(frame)


def _flawless_file(folder: Path, task: tuple[int, Path]) -> bool:
    number, path = task
    if path.suffix == ".csv" and not _ends_with_a_line(path):
        return False
    return _write_flawless(path, folder / f"{number}.parquet", number << FILE_BITS)


def _cut_off(several: bool, path: Path) -> bool:
    """Whether a file of a group ends within a line; a file of any system may."""
    return several and path.suffix == ".csv" and not _ends_with_a_line(path)


def _fields_file(folder: Path, task: tuple[int, Path]) -> None:
    number, path = task
    widths = {kind: width for kind, (width, _) in FIELDS.items()}
    target = folder / f"{number}.parquet"
    write_answers(path, target, PATTERN, widths, 0, number << FILE_BITS)


def _write_flawless(path: Path, target: Path, place: int = 0) -> bool:
    """Write the answers as Parquet; False if any line is not an answer or out of range."""
    with (
        written(target) as file,
        pq.ParquetWriter(file, TYPED, compression="zstd", use_dictionary=False) as writer,
    ):
        for block in blocks_of(path):
            columns = _flawless(split_lines(block))
            if columns is None:
                return False
            many = len(columns["type"])
            columns["place"] = np.arange(place, place + many)
            place += many
            arrays = [pa.array(columns[field.name]).cast(field.type) for field in list(TYPED)[:-1]]
            writer.write_table(pa.table([*arrays, pa.nulls(many, pa.string())], schema=TYPED))
    return True


def _flawless(lines: Any) -> dict[str, NDArray[Any]] | None:
    """The columns of lines; numbers of up to 15 digits are exact in a double."""
    if not pc.all(pc.match_substring_regex(lines, FLAWLESS)).as_py():
        return None
    split = pc.split_pattern(lines, ",")
    begins = np.asarray(split.offsets)[:-1].astype(np.int64)
    number = pc.cast(split.flatten(), pa.float64()).to_numpy()
    kind = number[begins].astype(np.int8)
    columns: dict[str, NDArray[Any]] = {"type": kind}
    for name in ("time", "emit", "key", "value", "amount"):
        at = np.array([FIELDS[each][1].get(name, 0) for each in range(len(FIELDS))])[kind]
        columns[name] = np.where(at > 0, number[begins + at], 0.0)
    if any(np.abs(columns[name]).max(initial=0) > _MOST for name in ("time", "key", "value")):
        return None
    emit = columns.pop("emit") * 1000
    columns["emit_ms"] = np.copysign(np.floor(np.abs(emit) + 0.5), emit)
    return columns
