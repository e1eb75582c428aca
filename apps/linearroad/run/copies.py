"""Copies of generated expressways, each with its own vehicles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linearroad.generation.manifest import rating_l, read_manifest
from xstream.errors import InputError

__all__ = ["ORIGINAL", "Copy", "copies_of"]

MOST_VIDS = MOST_QIDS = 2**31


@dataclass(frozen=True)
class Copy:
    """The numbers that a copy adds to XWays, VIDs and QIDs."""

    xway_by: int
    vid_by: int
    qid_by: int


ORIGINAL = Copy(0, 0, 0)


def copies_of(source: Path, expressways: float | None) -> list[Copy]:
    """The copies of a generated directory that are needed for this many expressways.

    Whole directories are copied, so that vehicles that change expressways stay within a copy.
    """
    if expressways is None:
        return [ORIGINAL]
    if not source.is_dir():
        raise InputError(f"--expressways requires a generated directory, and {source} is a file")
    manifest = read_manifest(source)
    files, base = int(manifest["parameters"]["expressways"]), rating_l(manifest)
    if expressways < base or expressways % base:
        raise InputError(
            f"{source} has {base:g} expressways, so --expressways must be a multiple of {base:g}, "
            f"not {expressways:g}"
        )
    vids, qids = int(manifest["totals"]["vehicles"]), int(manifest["totals"]["queries"])
    count = int(expressways // base)
    if count * vids > MOST_VIDS or count * qids > MOST_QIDS:
        raise InputError(
            f"{expressways:g} expressways would have {count * vids:,} vehicles and "
            f"{count * qids:,} requests; at most {MOST_VIDS:,} can be numbered"
        )
    return [Copy(files * c, vids * c, qids * c) for c in range(count)]
