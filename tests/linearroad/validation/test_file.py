"""A file of answers of any system is judged by the paper's, the 2004 and the 2016 rules.

It has no summary, its lines are in any order, and its balances are those of any admissible second.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.cli import app
from linearroad.validation.job import validate
from typer.testing import CliRunner

from tests.linearroad.validation.runs import (
    Answer,
    CaseFiles,
    expected_answers,
    line_of,
    write_case,
)
from tests.reference.linearroad_strategies import Scenario, scenario
from xstream.errors import InputError

pytestmark = pytest.mark.spark
SEEDS = {"paper": 7, "brandeis": 1, "walmart": 2}
#: Lines that are no answers, whatever the rules.
MALFORMED = (
    "", "no answer", "5,1,2,3.000,4,5", "0,1,2,3.000,4", "0,1,2,3.000,4,5,6", "0, 1,2,3.000,4,5",
    "0,1,2,3.000,4,5.5", "0,1,99999999999,3.000,4,5", "0,1,2,1e3,4,5", f"0,1,2,{'9' * 400},4,5",
    f"0,1,2,{'9' * 30},4,5", "2,1,2.000,3,4", "\N{SNOWMAN}",
)  # fmt: skip


class Balances:
    """What the expected answers say about the balances of a vehicle, by its requests."""

    def __init__(self, case: Scenario, answers: list[Answer]) -> None:
        self.vehicles = {(row.qid, row.time): row.vid for row in case.rows if row.type == 2}
        self.known: dict[int, dict[int, int]] = defaultdict(dict)
        for kind, time, *rest in answers:
            if kind == 2:
                self.known[self.vehicles[rest[1], time]][time] = rest[2]

    def older(self, answer: Answer) -> Answer:
        """The answer with the oldest balance that may be sent and is known."""
        _, time, _, qid, _ = answer
        known = self.known[self.vehicles[qid, time]]
        oldest = min(second for second in known if time - 60 <= second <= time)
        return (2, time, oldest, qid, known[oldest])


def of_another_system(case: Scenario, answers: list[Answer], delay_s: float) -> list[str]:
    """Right answers as another system may send them: with older balances."""
    balances = Balances(case, answers)
    sent = [balances.older(answer) if answer[0] == 2 else answer for answer in answers]
    assert sum(one != other for one, other in zip(sent, answers, strict=True)) > 5
    return [line_of(answer, delay_s) for answer in sent]


def write_file(path: Path, lines: list[str], newline: str) -> Path:
    random.Random(3).shuffle(lines)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes("".join(f"{line}{newline}" for line in lines).encode())
    return path


def judge(files: CaseFiles, output: Path, rules: str) -> tuple[int, str]:
    """The exit code of the command and what it prints."""
    history = files.history
    done = CliRunner().invoke(
        app,
        ["validate", "--input", str(files.input), "--output", str(output), "--rules", rules,
         "--tolls", str(history.tolls), "--segment-history", str(history.segments)],
    )  # fmt: skip
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


def test_right_answers_in_any_order_pass(spark_session: object, tmp_path: Path) -> None:
    case = scenario(SEEDS["paper"])
    files = write_case(tmp_path / "case", case)
    answers = expected_answers(case)
    lines = of_another_system(case, answers, 0.0)
    output = write_file(tmp_path / "theirs" / "answers.txt", lines, "\r\n")
    code, told = judge(files, output, "paper")
    assert f"right: all {len(answers):,} answers by the rules of paper" in told
    assert "every Emit is its Time" in told
    assert code == 0
    assert {path.name for path in output.parent.iterdir()} == {"answers.txt", "validation.json"}


@pytest.mark.parametrize(
    "rules",
    [rules if rules == "paper" else pytest.param(rules, marks=pytest.mark.slow) for rules in SEEDS],
)
def test_what_is_wrong_is_named(spark_session: object, tmp_path: Path, rules: str) -> None:
    case = scenario(SEEDS[rules])
    files = write_case(tmp_path / "case", case)
    answers = expected_answers(case, rules)
    lines = of_another_system(case, answers, 0.5)
    left = {answer: at for at, answer in enumerate(answers) if answers.count(answer) == 1}

    def take(wanted: Callable[[Answer], bool]) -> tuple[int, Answer]:
        answer = next(answer for answer in left if wanted(answer))
        return left.pop(answer), answer

    at, (_, vid, time, lav, toll) = take(lambda a: a[0] == 0 and a[4] > 0)
    lines[at] = line_of((0, vid, time, lav, toll + 1), 0.5)
    wrong = f"at {time} s: expected a toll notification (LAV {lav}, toll {toll})"
    at, missing = take(lambda a: a[0] == 3)
    lines[at] = MALFORMED[0]
    at, _ = take(lambda a: a[0] == 1)
    lines.append(lines[at])
    at, late = take(lambda a: a[0] == 0)
    lines[at] = line_of(late, 5.001)
    at, early = take(lambda a: a[0] == 4)
    lines[at] = line_of(early, -0.5)
    lines += MALFORMED[1:]
    output = write_file(tmp_path / "answers.csv", lines, "\n")
    code, printed = judge(files, output, rules)
    assert code == 1
    assert printed.startswith("WRONG: 1 missing, 1 different, 1 duplicate, ")
    assert "NOT IN TIME: 1 late, 1 before time" in printed
    verdict = json.loads((tmp_path / "validation.json").read_text())
    assert {kind: n for kind, n in verdict["differences"].items() if n} == {
        "different": 1, "missing": 1, "duplicate": 1, "late": 1, "early": 1,
        "malformed": len(MALFORMED),
    }  # fmt: skip
    told = "\n".join(pq.read_table(tmp_path / "differences.parquet")["sentence"].to_pylist())
    for words in (
        wrong, f"expenditure request {missing[2]} ", "was sent more than once",
        "was sent 5.001 s after, the limit is 5 s", "was sent 0.500 s before",
        "a row is no answer: no answer",
    ):  # fmt: skip
        assert words in told


@pytest.mark.parametrize("rules", ["paper", "thesis"])
def test_a_parquet_file_of_something_else_gets_one_sentence(
    spark_session: object, tmp_path: Path, rules: str
) -> None:
    (tmp_path / "rows.csv").write_text("2,9,1,3,0,0,0,0,0\n")
    output = tmp_path / "answers.parquet"
    output.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="is not a Parquet file"):
        validate(tmp_path / "rows.csv", output, rules=rules)
    pq.write_table(pa.table({"type": [1]}), output)
    missing = {"paper": "time", "thesis": "arrival"}[rules]
    with pytest.raises(InputError, match=f"has no column '{missing}'"):
        validate(tmp_path / "rows.csv", output, rules=rules)
