"""Results of experiments in a directory: what is finished, what can be resumed, what is stored.

`xstream experiment` writes to OUT/NAME. The results that the project keeps stand beside the
experiments in the source tree; `store` puts them there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xstream.bench.experiment import Scale, experiments
from xstream.bench.journal import Journal
from xstream.bench.report import machine
from xstream.errors import InputError

__all__ = ["STORED", "check_store", "finished", "journal", "store"]

#: The files that are kept in the source tree: every trial, and the page for its readers.
STORED = ("results.csv", "page.md")


def _how(scale: Scale) -> dict[str, Any]:
    return {**scale.to_json(), "commit": machine()["commit"]}


def journal(folder: Path, scale: Scale, resume: bool) -> Journal:
    """The journal of an experiment that writes to that folder."""
    return Journal(folder / "journal.jsonl", _how(scale), resume)


def finished(folder: Path, scale: Scale) -> dict[str, Any] | None:
    """The outcome in that folder, if the same commit has measured it at that scale."""
    try:
        outcome: dict[str, Any] = json.loads((folder / "results.json").read_text())["outcome"]
        found = {**{key: outcome[key] for key in scale.to_json()}, **_commit(outcome)}
    except (OSError, ValueError, KeyError):
        return None
    return outcome if found == _how(scale) else None


def _commit(outcome: dict[str, Any]) -> dict[str, Any]:
    return {"commit": outcome["machine"]["commit"]}


def check_store(names: Sequence[str]) -> None:
    """An error where an experiment's folder is not one of a source tree."""
    for name in names:
        folder = experiments().get(name, Path(name))
        if folder.parent.name == "experiments" and folder.parents[1].name != "bench":
            raise InputError(
                f"--store puts results beside {name} in a source tree, and this is an installed "
                "package"
            )


def store(name: str, folder: Path) -> list[Path]:
    """Put the results of an experiment beside it; the files that were written."""
    beside = experiments().get(name, Path(name))
    return [Path(shutil.copyfile(folder / file, beside / file)) for file in STORED]
