"""Right answers pass: the slow reference's, for every rule set and adversarial traffic."""

from __future__ import annotations

from pathlib import Path

import pytest
from linearroad.validation.job import validate

from tests.linearroad.validation.runs import expected_answers, line_of, write_case, write_run
from tests.reference.linearroad_strategies import scenario

pytestmark = pytest.mark.spark
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("rules", "seed"),
    [("paper", 7), pytest.param("brandeis", 1, marks=SLOW), pytest.param("walmart", 2, marks=SLOW)],
)  # fmt: skip
def test_the_references_answers_are_right(
    spark_session: object, tmp_path: Path, rules: str, seed: int
) -> None:
    case = scenario(seed)
    files = write_case(tmp_path / "case", case)
    answers = expected_answers(case, rules)
    write_run(tmp_path / "run", [line_of(answer) for answer in answers], rules=rules)
    shown = validate(files.input, tmp_path / "run", files.history)
    assert shown.verdict.first_differences == []
    assert shown.verdict.passed
    assert sum(each.right for each in shown.verdict.types) == len(answers)
