"""The originals of a rating: their digests, the state for probes, and their validation.

`validate` checks written answers, while copies are compared by digests. To connect the two, the
digest of the written answers must equal the sum of the digests of all originals.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import xstream as xs
from linearroad.generation.manifest import Entry, read_json, write_json
from linearroad.operators.digests import DIGEST_WIDTH, add
from linearroad.output.digests import Digests, read_digests
from linearroad.rating.steps import Say, call
from linearroad.schema import KINDS
from linearroad.storage import readable
from xstream.errors import InputError

__all__ = [
    "LEGS", "STATE", "Originals", "check_digest", "check_written", "digest_of_written",
    "kept_originals", "make_validated", "pause_of", "prepare", "prepared", "validated",
]  # fmt: skip

#: Folders of the two parts of the originals' run, and of the state between them.
LEGS, STATE = ("first", "last"), "state"
#: Written when all of them are complete.
COMPLETE = "complete.json"


@dataclass(frozen=True)
class Originals:
    """Digests of the generated expressways, by minute; and their state before the last minutes."""

    digests: Digests
    state: Path
    state_minute: int


def prepare(base: Path, manifest: Entry, folder: Path, probe_minutes: int, say: Say) -> Originals:
    """Run the originals in two parts, and save the state for probes in between."""
    pause = pause_of(manifest, probe_minutes)
    (folder / COMPLETE).unlink(missing_ok=True)
    common = [
        *("linearroad", "run", "--input", str(base), "--history", str(base)),
        *("--answers", "digest"),
    ]
    state = folder / STATE
    legs = (("--minutes", str(pause), "--keep-state", str(state)), ("--from-state", str(state)))
    for leg, options in zip(LEGS, legs, strict=True):
        (folder / leg / "summary.json").unlink(missing_ok=True)
        said = call([*common, *options, "--out", str(folder / leg)], say)
        if not (folder / leg / "summary.json").exists():
            raise InputError(said[-1].removeprefix("xstream: ") if said else f"{base} did not run")
    return prepared(folder, manifest, pause)


def pause_of(manifest: Entry, probe_minutes: int) -> int:
    """The minute before the probes, at the end of which the state is saved."""
    return max(int(manifest["parameters"]["minutes"]) - probe_minutes, 1)


def prepared(folder: Path, manifest: Entry, pause: int) -> Originals:
    """The originals that have been run; notes that they are complete."""
    write_json(folder / COMPLETE, _traffic(manifest) | {"minute": pause})
    return _read(folder, manifest, pause)


def kept_originals(folder: Path, manifest: Entry) -> Originals | None:
    """The originals that an earlier rating has run; None if it did not, or with other traffic."""
    if not (folder / COMPLETE).is_file():
        return None
    complete = read_json(folder / COMPLETE)
    pause = complete.pop("minute")
    return _read(folder, manifest, pause) if complete == _traffic(manifest) else None


def _traffic(manifest: Entry) -> Entry:
    return {"parameters": manifest["parameters"], "totals": manifest["totals"]}


def _read(folder: Path, manifest: Entry, pause: int) -> Originals:
    originals, minutes = (int(manifest["parameters"][name]) for name in ("expressways", "minutes"))
    digests = np.zeros((originals, minutes, KINDS, DIGEST_WIDTH), np.uint64)
    for leg in LEGS:
        digests += read_digests(folder / leg / "digests.parquet", originals, minutes)
    return Originals(digests, folder / STATE, pause)


def validated(folder: Path, manifest: Entry) -> str | None:
    """The verdict of `validate` on all answers to this traffic; None if there is none."""
    path = folder / "validation.json"
    if not path.is_file():
        return None
    found = read_json(path)
    if found.get("rows") != manifest["totals"]["rows"] or found.get("covered"):
        raise InputError(f"{path} is about rows of other traffic than the base")
    if not found.get("right"):
        raise InputError(f"{folder} was validated, and answers are wrong: {found.get('verdict')}")
    return str(found.get("verdict")).split(";")[0]


def make_validated(
    base: Path, folder: Path, threads: int, say: Say, history: Path | None = None
) -> None:
    """Write the originals' answers and validate all of them with Spark.

    `history` is the directory with their history, if it is not the base itself.
    """
    common = ["--input", str(base), "--history", str(history or base)]
    run = ["linearroad", "run", *common, "--out", str(folder), "--format", "parquet"]
    call([*run, "--threads", str(threads)], say)
    said = call(["linearroad", "validate", *common, "--output", str(folder)], say)
    if not (folder / "validation.json").is_file():
        raise InputError(said[-1].removeprefix("xstream: ") if said else "validation did not end")


def check_written(folder: Path, digests: Digests) -> None:
    """Raise InputError unless the validated answers match the digests."""
    check_digest(folder, digest_of_written(folder / "output.parquet", digests.shape[1]), digests)


def check_digest(folder: Path, written: Digests, digests: Digests) -> None:
    """Raise InputError unless the digest of validated answers is the sum of the digests."""
    if not np.array_equal(written, digests.sum(axis=0, dtype=np.uint64)):
        raise InputError(
            f"the validated answers in {folder} differ from those of this engine: "
            "validate them again"
        )


def digest_of_written(path: Path, minutes: int) -> Digests:
    """Digests of answers in a Parquet file, by minute and kind."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: run the originals with --format parquet")
    sums = np.zeros((minutes, KINDS, DIGEST_WIDTH), np.int64)
    names = ["type", "time", "vid", "qid", "lav", "toll", "seg", "bal", "traveltime"]
    try:
        with pq.ParquetFile(readable(path), page_checksum_verification=True) as file:
            for batch in file.iter_batches(1 << 18, columns=names):
                columns = {name: _filled(batch.column(name)) for name in names}
                kind, time = columns["type"], columns["time"]
                if ((kind < 0) | (kind >= KINDS) | (time < 0) | (time >= 60 * minutes)).any():
                    raise InputError(
                        f"{path} contains answers past minute {minutes} of the traffic"
                    )
                add_written(sums.reshape(-1), *columns.values())
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return sums.view(np.uint64)


def _filled(column: Any) -> NDArray[np.int64]:
    """A column with 0 for null; null fields do not belong to the type of the answer."""
    filled: NDArray[np.int64] = column.fill_null(0).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64)


@xs.compiled
def add_written(sums, kind, time, vid, qid, lav, toll, seg, bal, traveltime):  # type: ignore[no-untyped-def]
    """Add answers to the digests of their minutes."""
    for i in range(len(kind)):
        k = kind[i]
        at = (time[i] // 60 * KINDS + k) * DIGEST_WIDTH
        who = vid[i] if k < 2 else qid[i]
        value = lav[i] + seg[i] + traveltime[i]  # an answer has only one of them
        add(sums, at, k, time[i], who, value, toll[i] + bal[i])
