"""Directories as a run leaves them, written by hand from the slow reference's answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linearroad.validation.job import HistoryPaths

from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario

Answer = tuple[int, ...]


def line_of(answer: Answer, delay_s: float = 0.0) -> str:
    """An answer of the reference, which has no Emit, by docs/linear-road-rules.md, section 4.1."""
    kind, *rest = answer
    at = 2 if kind == 0 else 1  # the field of Time
    emit = f"{answer[at] + delay_s:.3f}"
    return ",".join(str(field) for field in (kind, *rest[:at], emit, *rest[at:]))


def time_of(answer: Answer) -> int:
    return answer[2] if answer[0] == 0 else answer[1]


def expected_answers(case: Scenario, rules: str = "paper") -> list[Answer]:
    rows, _ = reference.parse(case.text)
    answers = reference.answers(rows, rules, case.tolls, case.segment_history)
    return sorted(answers, key=time_of)


def write_run(directory: Path, lines: list[str], **summary: Any) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "output.csv").write_text("".join(f"{line}\n" for line in lines))
    told = {"rules": "paper", "speed": "max", "interrupted": False, **summary}
    (directory / "summary.json").write_text(json.dumps(told))


@dataclass(frozen=True)
class CaseFiles:
    """A scenario's input and history on disk."""

    input: Path
    history: HistoryPaths


def write_case(directory: Path, case: Scenario) -> CaseFiles:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("rows.csv", case.text),
        ("tolls.csv", reference.to_text(case.tolls)),
        ("segments.csv", reference.to_text(case.segment_history)),
    ):
        (directory / name).write_bytes(text.encode())
    history = HistoryPaths(None, directory / "tolls.csv", directory / "segments.csv")
    return CaseFiles(directory / "rows.csv", history)
