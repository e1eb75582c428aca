"""Judges recorded answers to a test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from xstream import InputError
from yabench.answers import read_answers
from yabench.csrbench import CSRBENCH
from yabench.experiments import test_file
from yabench.files import read_records
from yabench.judge import Judgement, judge
from yabench.oracle import Oracle, SparqlOracle
from yabench.policy import judge_any
from yabench.record_oracle import SqlOracle
from yabench.stream import read_rdf_stream
from yabench.testfile import read_tests
from yabench.weather import as_records
from yabench.windows import Windowing

__all__ = ["check"]


def check(
    test: str,
    stream: Path,
    answers: Path,
    gracious: bool = False,
    policy: str | None = None,
    only_new: bool | None = None,
    tests: Path | None = None,
) -> Judgement:
    """Judge the answers in a file to a test over the stream in a file.

    The test is a built-in one, or one of the test file `tests`.
    """
    if tests is not None:
        return _check_own(test, tests, stream, answers, gracious, policy, only_new)
    known = CSRBENCH.get(test.lower())
    if known is None:
        raise InputError(
            f"there is no test {test!r}: choose {', '.join(CSRBENCH)}, or name its file by --tests"
        )
    # `only_new` is a property of content-change, so it selects that policy.
    policy = policy or ("content-change" if only_new is not None else None)
    windowing = Windowing(known.size_ms, known.slide_ms, policy or "window-close", bool(only_new))
    given = read_answers(answers)
    oracle = SparqlOracle(read_rdf_stream(stream), known.query)
    if policy is None:
        return judge_any(oracle, windowing, given, gracious)
    return judge(oracle, windowing, given, gracious)


def _check_own(
    name: str,
    tests: Path,
    stream: Path,
    answers: Path,
    gracious: bool,
    policy: str | None,
    only_new: bool | None,
) -> Judgement:
    """Judge the answers to a test of a test file."""
    known = {each.name: each for each in read_tests(test_file(tests))}
    if name not in known:
        raise InputError(f"{tests} has no test {name!r}: it has {', '.join(known)}")
    test = known[name]
    windowing = replace(
        test.windowing,
        policy=policy or test.windowing.policy,
        only_new=test.windowing.only_new if only_new is None else only_new,
    )
    oracle: Oracle
    if test.language == "sparql":
        oracle = SparqlOracle(read_rdf_stream(stream), test.oracle)
    elif stream.suffix in (".arrow", ".parquet"):
        oracle = SqlOracle(read_records(stream), test.oracle)
    else:
        raise InputError(f"{stream}: the oracle of {name} is SQL, over .arrow or .parquet files")
    given = read_answers(answers)
    if test.language == "sql":
        given = [each.with_bindings(as_records(each.bindings)) for each in given]
    return judge(oracle, windowing, given, gracious)
