"""Every way in which a run can be wrong is found and named.

The reference's right answers are changed in many ways at once, each on a separate row, and
validated once; every test below looks for its own change in the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from linearroad.validation.job import Shown, validate

from tests.linearroad.validation.runs import (
    Answer,
    expected_answers,
    line_of,
    time_of,
    write_case,
    write_run,
)
from tests.reference.linearroad_strategies import Scenario, scenario

pytestmark = pytest.mark.spark
SEED = 7
UNKNOWN = 123_456_789


@dataclass
class Mutant:
    """Answers that are changed step by step, and the differences to be reported."""

    answers: list[Answer]
    lines: list[str] = field(default_factory=list)
    expected: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lines = [line_of(answer, 0.25) for answer in self.answers]

    def pick(self, wanted: Callable[[Answer], bool]) -> int:
        """A row that has not been changed and whose key is unique."""
        for at, answer in enumerate(self.answers):
            alike = [other for other in self.answers if other[0] == answer[0]
                     and key_of(other) == key_of(answer)]  # fmt: skip
            if at not in self.used and wanted(answer) and len(alike) == 1:
                self.used.add(at)
                return at
        raise AssertionError("the scenario has no such answer")

    def change(self, at: int, **to: int) -> None:
        """Give an answer's fields other values."""
        fields = list(self.answers[at])
        for place, value in to.items():
            fields[int(place[1:])] = value
        self.lines[at] = line_of(tuple(fields), 0.25)


def key_of(answer: Answer) -> tuple[int, int]:
    kind = answer[0]
    return time_of(answer), answer[{0: 1, 1: 2, 2: 3, 3: 2, 4: 2}[kind]]


def of(kind: int) -> Callable[[Answer], bool]:
    return lambda answer: answer[0] == kind


def mutate(m: Mutant, case: Scenario) -> None:
    """Apply all changes to the answers, and record the expected differences."""

    def note(name: str, *found: tuple[str, str]) -> None:
        m.expected[name] = list(found)

    for kind, name in enumerate(("notification", "alert", "balance", "expenditure", "travel time")):
        at = m.pick(of(kind))
        m.lines[at] = ""
        note(f"{name} dropped", ("missing", about(m.answers[at])))
    for kind, name in ((0, "notification"), (1, "alert"), (2, "balance")):
        at = m.pick(of(kind))
        m.lines[at] += "\n" + m.lines[at]
        note(f"{name} doubled", ("duplicate", about(m.answers[at])))
    changes: list[tuple[str, Callable[[Answer], bool], int, int]] = [
        ("toll off by one", lambda a: a[0] == 0 and a[4] > 0, 4, 1),
        ("LAV off by one", of(0), 3, 1),
        ("toll where there is none", lambda a: a[0] == 0 and a[4] == 0, 4, 2),
        ("wrong accident segment", of(1), 3, 1),
        ("balance off by one", of(2), 4, 1),
        ("expenditure off by one", of(3), 3, 1),
        ("travel time 6 % off", lambda a: a[0] == 4 and a[3] >= 100, 3, 0),
        ("travel toll off by one", lambda a: a[0] == 4, 4, 1),
        ("balance older than 60 s", lambda a: a[0] == 2 and a[1] > 61, 2, -61),
        ("balance of the future", of(2), 2, 1),
    ]
    for name, wanted, place, step in changes:
        at = m.pick(wanted)
        old = m.answers[at][place]
        m.change(at, **{f"f{place}": old + step if step else int(old * 1.06) + 1})
        note(name, ("different", about(m.answers[at])))
    times = {key_of(answer) for answer in m.answers if answer[0] == 1}
    for name, step in (("alert a minute early", -60), ("alert a minute late", 60)):
        at = m.pick(lambda a, step=step: a[0] == 1 and a[1] + step >= 0
                    and (a[1] + step, a[2]) not in times)  # fmt: skip
        moved = (1, m.answers[at][1] + step, *m.answers[at][2:])
        m.lines[at] = ""
        insert(m, moved)
        note(name, ("missing", about(m.answers[at])), ("unexpected", about(moved)))
    last = time_of(m.answers[-1])
    for name, answer in (
        ("notification of an unknown vehicle", (0, UNKNOWN, last, 50, 0)),
        ("alert of an unknown vehicle", (1, last, UNKNOWN, 3)),
        ("balance that nobody asked for", (2, last, last, UNKNOWN, 0)),
    ):
        m.lines.append(line_of(answer, 0.25))
        note(name, ("unexpected", about(answer)))
    for kind, delay, name in ((0, 5.001, "late notification"), (4, 30.001, "late travel time")):
        at = m.pick(of(kind))
        m.lines[at] = line_of(m.answers[at], delay)
        note(name, ("late", about(m.answers[at])))
    for kind, delay in ((1, 5.0), (3, 10.0)):  # exactly the limit is in time
        at = m.pick(of(kind))
        m.lines[at] = line_of(m.answers[at], delay)
    at = m.pick(of(0))
    m.lines[at] = line_of(m.answers[at], -1)
    note("answered before it happened", ("early", about(m.answers[at])))
    m.lines.append("0,1,2,3")
    m.lines.append("7,1,2,3,4,5")
    note("a row of four fields", ("malformed", "0,1,2,3"))
    note("a row of an unknown type", ("malformed", "7,1,2,3,4,5"))


def insert(m: Mutant, answer: Answer) -> None:
    """Insert it at its second, so that the file stays ordered."""
    at = next(i for i, other in enumerate(m.answers) if time_of(other) >= time_of(answer))
    m.lines[at] = "\n".join(line for line in (line_of(answer, 0.25), m.lines[at]) if line)


def about(answer: Answer) -> str:
    time, key = key_of(answer)
    return f"{'vehicle' if answer[0] < 2 else 'request'} {key}@{time}"


def found_about(row: dict) -> str:
    if row["kind"] == "malformed":
        return str(row["text"])
    return f"{'vehicle' if row['type'] < 2 else 'request'} {row['key']}@{row['time']}"


@pytest.fixture(scope="module")
def mutant() -> Mutant:
    case = scenario(SEED)
    made = Mutant(expected_answers(case))
    mutate(made, case)
    return made


@pytest.fixture(scope="module")
def shown(
    spark_session: object, mutant: Mutant, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Shown, Path]:
    folder = tmp_path_factory.mktemp("mutant")
    files = write_case(folder / "case", scenario(SEED))
    lines = [line for lines in mutant.lines for line in lines.split("\n") if line]
    write_run(folder / "run", lines, speed=2.0)
    return validate(files.input, folder / "run", files.history), folder / "run"


NAMES = (
    "notification dropped", "alert dropped", "balance dropped", "expenditure dropped",
    "travel time dropped", "notification doubled", "alert doubled", "balance doubled",
    "toll off by one", "LAV off by one", "toll where there is none", "wrong accident segment",
    "balance off by one", "expenditure off by one", "travel time 6 % off",
    "travel toll off by one", "balance older than 60 s", "balance of the future",
    "alert a minute early", "alert a minute late", "notification of an unknown vehicle",
    "alert of an unknown vehicle", "balance that nobody asked for", "late notification",
    "late travel time", "answered before it happened", "a row of four fields",
    "a row of an unknown type",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_it_is_found_and_named(name: str, mutant: Mutant, shown: tuple[Shown, Path]) -> None:
    found = {(row["kind"], found_about(row)) for row in shown[0].differences}
    for difference in mutant.expected[name]:
        assert difference in found


def test_nothing_else_is_found(mutant: Mutant, shown: tuple[Shown, Path]) -> None:
    assert set(mutant.expected) == set(NAMES)
    wanted = sorted(found for each in mutant.expected.values() for found in each)
    found = sorted((row["kind"], found_about(row)) for row in shown[0].differences)
    assert found == wanted


def test_the_differences_are_told_in_words(mutant: Mutant, shown: tuple[Shown, Path]) -> None:
    sentences = {(row["kind"], found_about(row)): row["sentence"] for row in shown[0].differences}

    def told(name: str) -> str:
        return str(sentences[mutant.expected[name][0]])

    at = next(a for a in mutant.answers if about(a) == mutant.expected["alert dropped"][0][1]
              and a[0] == 1)  # fmt: skip
    assert f"vehicle {at[2]} crossed into segment " in told("alert dropped")
    assert f" at {at[1]} s: expected an alert for the accident in {at[3]}, none was sent" in told(
        "alert dropped"
    )
    assert "61 s old, at most 60 are allowed" in told("balance older than 60 s")
    assert "more than 5% off" in told("travel time 6 % off")
    assert "5.001 s after, the limit is 5 s" in told("late notification")
    assert "is not in the input" in told("notification of an unknown vehicle")
    assert "was sent more than once" in told("notification doubled")


def test_what_was_found_is_on_disk_for_people_and_machines(shown: tuple[Shown, Path]) -> None:
    result, directory = shown
    table = pq.read_table(directory / "differences.parquet").to_pylist()
    assert [row["sentence"] for row in table] == [row["sentence"] for row in result.differences]
    told = json.loads((directory / "validation.json").read_text())
    assert told["passed"] is told["right"] is told["in_time"] is False
    assert sum(told["differences"].values()) == len(table)
    assert told["types"]["accident alerts"]["recall"] < 1
    assert told["verdict"].startswith("WRONG: ")
    assert not list(directory.glob(".validation-*"))
