"""The validator by the rules of the thesis agrees with the reference, and finds what is wrong."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pyarrow as pa
import pytest
from linearroad.validation.job import HistoryPaths, validate
from linearroad.validation.thesis_accounts import Account
from linearroad.validation.thesis_balances import settled
from linearroad.validation.verdict import Verdict

from tests.linearroad.validation.runs import write_run
from tests.reference import linearroad as paper
from tests.reference import linearroad_thesis as reference
from tests.reference.linearroad_thesis_strategies import Scenario, scenario

pytestmark = pytest.mark.spark
Answer = tuple[int, ...]


def stamped(answer: Answer, delay: float = 0.0) -> str:
    second, *fields = answer
    return ",".join([f"{second + delay:.3f}", *map(str, fields)])


def expected(case: Scenario) -> list[Answer]:
    rows, _ = reference.parse(case.text)
    return reference.answers(rows, case.segment_history, case.constants)


def judged(
    folder: Path, case: Scenario, lines: list[str], tariff: bool = True, **summary: object
) -> Verdict:
    """The verdict about answers, of a file of another system or of a run with a summary."""
    folder.mkdir(parents=True)
    (folder / "rows.csv").write_text(case.text)
    (folder / "segments.csv").write_text(paper.to_text(case.segment_history))
    output = folder / "run"
    constants = case.constants._asdict()
    if summary:
        write_run(output, lines, rules="thesis", tariff=constants, rows_by_type={}, **summary)
    else:
        output = folder / "answers.csv"
        output.write_text("".join(f"{line}\n" for line in lines))
    history = HistoryPaths(segments=folder / "segments.csv")
    given = constants if tariff else None
    return validate(folder / "rows.csv", output, history, "thesis", tariff=given).verdict


@pytest.mark.parametrize("seed", [0, 1])
def test_the_references_answers_are_right(spark_session: object, tmp_path: Path, seed: int) -> None:
    case = scenario(seed)
    lines = [stamped(answer) for answer in expected(case)]
    found = judged(tmp_path / "run", case, lines, tariff=False, speed="max")
    assert found.passed, found.first_differences[:5]
    assert all(each.right > 0 for each in found.types)


def test_wrong_answers_of_another_system_are_named(spark_session: object, tmp_path: Path) -> None:
    case = scenario(1)
    # Several requests with one number in one second: the order of their answers is free.
    last_second = max(row.time for row in case.rows)
    alike = [f"4,{last_second},1,{10**6 + 1},0,3,{mend},1,5\n" for mend in (30, 4, 60, 15, 9)]
    case = case._replace(text=case.text + "".join(alike))
    answers = expected(case)
    lines = [stamped(answer, 0.25) for answer in answers]
    kinds = [answer[1] for answer in answers]

    def last(kind: int) -> int:
        return len(kinds) - 1 - kinds[::-1].index(kind)

    travel = kinds.index(4)
    second, _, qid, seconds, toll, _ = answers[travel]
    lines[travel] = f"{second + 0.5},4,{qid},{int(seconds * 1.04)},{toll},0"  # accepted
    late = last(2)
    lines[late] = stamped(answers[late], 60.5)
    wrong = last(3)
    lines[wrong] = stamped((*answers[wrong][:3], answers[wrong][3] + 1, 0, 0), 0.5)
    missing = last(1)
    lines[missing] = "no answer"
    lines.append(f"9.5,2,{10**6},5,0,0")
    found = judged(tmp_path / "file", case, lines[::-1])
    assert found.paced
    assert found.unreadable == 1
    assert {kind: n for each in found.types for kind, n in each.differences.items() if n} == {
        "late": 1, "different": 1, "missing": 1, "unexpected": 1,
    }  # fmt: skip
    told = " ".join(found.first_differences)
    for words in ("a row is no answer: no answer", "none was sent", "the limit is 60 s",
                  "was sent and not expected"):  # fmt: skip
        assert words in told


def test_answers_that_suit_several_expressways_are_given_to_all() -> None:
    """Whichever expressway comes first, none is left without an answer that suits it."""

    def entry(xway: int, *choices: tuple[int, int]) -> dict[str, object]:
        told = [{"speed": speed, "base": base} for base, speed in choices]
        return {"what": 0, "time": 43, "xway": xway, "entered": True, "first": True,
                "credited": False, "speed": -1, "base": 0, "choices": told}  # fmt: skip

    events = [entry(0, (8, 35), (0, 34)), entry(1, (8, 35)), entry(2)]
    for order in itertools.permutations(events):
        for answers in itertools.permutations([(8, 35), (0, 34), (0, -1)]):
            sent = [{"base": base, "speed": speed, "place": i}
                    for i, (base, speed) in enumerate(answers)]  # fmt: skip
            found = Account(50, 500).answers(7, list(order), [], sent)
            assert [(toll, speed) for _, _, _, toll, speed, _, _ in found] == list(answers)
    sent = [{"base": 8, "speed": 35, "place": 0}, {"base": 9, "speed": 9, "place": 1}]
    found = Account(50, 500).answers(7, events, [], sent)
    assert [(toll, speed) for _, _, _, toll, speed, _, _ in found] == [(8, 35), (0, -1), (0, -1)]


def test_a_toll_of_another_second_is_accepted_and_charged(
    spark_session: object, tmp_path: Path
) -> None:
    """A system that computes its statistics half a minute later than the full minute."""
    crowd = [reference.Report(60 + i % 30, 1000 + i, 20, 0, 5, i, 4, 1) for i in range(160)]
    me = [reference.Report(130 + 30 * k, 7, 30, 0, 5 + k, 9, 5, 1) for k in range(2)]
    asked = [reference.Request(2, 170, 7, 1)]
    rows = sorted([*crowd, *me, *asked], key=lambda row: row.time)
    case = Scenario(rows, reference.to_text(rows), [], reference.Constants())
    usual = expected(case)
    assert (130, 0, 7, 200, 20, 0) in usual
    assert (170, 2, 1, 200, 0, 0) in usual
    # At second 80 the first 20 of every 30 vehicles have reported: 100 + 10 of them, no toll.
    other = [(130, 0, 7, 0, 20, 0) if answer[:3] == (130, 0, 7) else answer for answer in usual]
    charged = [(170, 2, 1, 0, 0, 0) if answer[1] == 2 else answer for answer in other]
    assert judged(tmp_path / "other", case, [stamped(a) for a in charged]).passed
    assert not judged(tmp_path / "half", case, [stamped(a) for a in other]).passed
    strict = judged(tmp_path / "own", case, [stamped(a) for a in charged], speed="max")
    assert not strict.passed


def test_arrivals_of_whole_seconds_are_timed_unless_all_are_those_of_their_rows(
    spark_session: object, tmp_path: Path
) -> None:
    reports = [reference.Report(30 * k, 7, 50, 0, 5 + k, 9, 5, 1) for k in range(4)]
    rows = [*reports, reference.Request(2, 95, 7, 1)]
    case = Scenario(rows, reference.to_text(rows), [], reference.Constants())
    usual = expected(case)
    at_once = [stamped(answer) for answer in usual]
    assert not judged(tmp_path / "at-once", case, at_once).paced
    # The later notifications are then compared with the reports before their own.
    assert not judged(tmp_path / "missing", case, at_once[1:]).paced
    late = judged(tmp_path / "late", case, [stamped(answer, 16.0) for answer in usual])
    assert (late.right, late.in_time) == (True, False)
    assert [each.differences["late"] for each in late.types] == [4, 0, 0, 0, 0]


def test_an_accident_in_the_last_seconds_that_there_are_is_found(
    spark_session: object, tmp_path: Path
) -> None:
    last = 2**31 - 1
    wreck = [reference.Report(last - 90 + 30 * k, vid, 0, 0, 9, vid, 5, 1)
             for k in range(4) for vid in (1, 2)]  # fmt: skip
    rows = [*wreck[:6], reference.Report(last - 9, 7, 50, 0, 8, 3, 5, 1), *wreck[6:]]
    case = Scenario(rows, reference.to_text(rows), [], reference.Constants())
    answers = expected(case)
    assert (last, 1, 7, 0, 9, 1) in answers
    found = judged(tmp_path / "file", case, [stamped(answer) for answer in answers])
    assert found.passed, found.first_differences


def rows_of_vehicles(choose: random.Random) -> list[dict[str, object]]:
    """Entries, exits and requests of some vehicles, at most one entry of each in a second."""
    rows: list[dict[str, object]] = []
    for vid in range(choose.randint(1, 6)):
        for second in sorted(choose.sample(range(50), choose.randint(0, 25))):
            common = {"vid": vid, "time": second, "speed": 30, "sent_speed": 30}
            nothing = dict.fromkeys(("entered", "first", "credited", "full", "half"), False)
            nothing |= dict.fromkeys(("base", "sent_toll", "kind", "qid"), 0)
            base = choose.choice([0, 7, 120, 481])
            sent = choose.choice([base, base // 2, base + 2])
            full = sent == base or choose.random() < 0.3
            half = sent == base // 2 or choose.random() < 0.3
            if sent == 0:
                full = half = full or half
            entry = {"entered": True, "first": choose.random() < 0.3, "base": base,
                     "sent_toll": sent, "full": full, "half": half}  # fmt: skip
            if choose.random() < 0.8:
                credited = choose.random() < 0.3
                rows.append({**common, **nothing, **entry, "credited": credited, "what": 0,
                             "xway": choose.randint(0, 2)})  # fmt: skip
            if choose.random() < 0.2:
                rows.append({**common, **nothing, "credited": True, "what": 0, "xway": 3})
            for qid in range(choose.randint(0, 2)):
                rows.append({**common, **nothing, "what": 1, "kind": choose.choice([2, 3]),
                             "qid": qid, "xway": choose.randint(-1, 3)})  # fmt: skip
    choose.shuffle(rows)
    return rows


def one_by_one(rows: list[dict[str, object]]) -> list[tuple[int, ...]]:
    """The same by the accounts of single vehicles."""
    found: list[tuple[int, ...]] = []
    for vid in {row["vid"] for row in rows}:
        theirs = sorted((row for row in rows if row["vid"] == vid), key=lambda row: row["time"])
        events = []
        for row in (row for row in theirs if row["what"] == 0):
            # The usual second accepts the base, and another one what was sent.
            pairs = [{"speed": 30, "base": row["sent_toll"]}] if row["full"] else []
            pairs += [{"speed": 30, "base": 2 * row["sent_toll"]}] if row["half"] else []
            events.append({**row, "choices": pairs})
        entered = [row for row in theirs if row["entered"]]
        sent = [{"base": row["sent_toll"], "speed": 30, "place": place}
                for place, row in enumerate(entered)]  # fmt: skip
        asked = [row for row in theirs if row["what"] == 1]
        found += Account(50, 500).answers(vid, events, asked, sent)  # type: ignore[arg-type]
    return sorted(found)


@pytest.mark.parametrize("seed", range(60))
def test_vehicles_that_are_followed_together_get_what_each_gets_alone(seed: int) -> None:
    rows = rows_of_vehicles(random.Random(seed))
    if not rows:
        return
    table = pa.Table.from_pylist(rows)
    found = settled(table, 50, 500)
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == (
        one_by_one(rows)
    )
