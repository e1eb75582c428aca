"""The answers to a driven stream, with the driver's times of arrival, judged by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from linearroad.driver.job import drive
from linearroad.driver.results import DriveOptions
from linearroad.generation.job import generate
from linearroad.generation.parameters import TrafficParameters
from linearroad.service.job import ServeOptions
from linearroad.tables.history import load_history
from linearroad.validation.job import HistoryPaths, validate

from tests.linearroad.service.systems import running

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
MINUTES = 2


@pytest.fixture(scope="module")
def cut(spark_session: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of one expressway from its first hour, with history."""
    out = tmp_path_factory.mktemp("cut") / "cut"
    parameters = TrafficParameters(expressways=1, minutes=MINUTES, seed=8, from_minute=40)
    generate(parameters, out, partitions=1, history=True)
    return out


@pytest.mark.parametrize(("wire", "rules"), [("flat", "paper"), ("arrow", "paper"),
                                             ("thesis", "thesis")])  # fmt: skip
def test_a_driven_cut_is_right_and_its_late_answers_are_the_drivers(
    cut: Path, tmp_path: Path, wire: str, rules: str
) -> None:
    out, known = tmp_path / "out", load_history(cut, None, None)
    with running(ServeOptions(wire=wire, rules=rules), known) as service:
        driven = drive(cut, service.address, out, DriveOptions(wire=wire, speed=4.0))
    assert driven.ended is None
    history = HistoryPaths(directory=cut)
    for output in (out, out / "output.csv"):
        verdict = validate(cut, output, history, rules).verdict
        assert verdict.paced
        assert verdict.rows == driven.rows
        assert sum(each.right for each in verdict.types) == sum(driven.answers.values())
        found = {kind: sum(each.differences[kind] for each in verdict.types)
                 for kind in verdict.types[0].differences}  # fmt: skip
        # A busy machine may be late, and then the driver and the validator say the same. Answers
        # of the thesis carry no times: the driver knows only the least that each may have taken.
        late = found.pop("late")
        assert late >= driven.late if wire == "thesis" else late == driven.late
        assert not any(found.values()), found


def test_an_answer_that_the_driver_received_too_late_is_late(cut: Path, tmp_path: Path) -> None:
    out, known = tmp_path / "out", load_history(cut, None, None)
    with running(ServeOptions(), known) as service:
        driven = drive(cut, service.address, out, DriveOptions(speed=4.0))
    file = out / "output.csv"
    lines = [line.split(",") for line in file.read_text().splitlines()]
    tolls = (line for line in lines if line[0] == "0")
    chosen = next(line for line in tolls if float(line[3]) < int(line[2]) + 5)
    chosen[3] = f"{int(chosen[2]) + 5.001:.3f}"
    file.write_text("".join(",".join(line) + "\n" for line in lines))
    verdict = validate(cut, file, HistoryPaths(directory=cut)).verdict
    assert not verdict.passed
    assert sum(each.differences["late"] for each in verdict.types) == driven.late + 1
