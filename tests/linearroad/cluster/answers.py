"""The answers of a run on one box, divided by the groups of expressways that they belong to."""

from __future__ import annotations

import bisect
import itertools
from pathlib import Path

from linearroad.generation.manifest import read_manifest


def by_group(road: Path, output: Path, group: int) -> list[bytes]:
    """The lines of an output in their order, by group of the vehicle or of the request."""
    manifest = read_manifest(road)
    vids = [entry["first_vid"] for entry in manifest["traffic"]]
    queries = [entry["queries"] for entry in manifest["simulated"]]
    qids = [0, *itertools.accumulate(queries)]
    found: dict[int, list[bytes]] = {x: [] for x in range(0, len(vids), group)}
    for line in output.read_bytes().splitlines(keepends=True):
        fields = line.split(b",")
        kind = int(fields[0])
        at = {0: 1, 1: 3, 2: 4, 3: 3, 4: 3}[kind]
        firsts = vids if kind < 2 else qids
        xway = bisect.bisect_right(firsts, int(fields[at])) - 1
        found[xway - xway % group].append(line)
    return [b"".join(found[x]) for x in sorted(found)]
