"""Judges recorded answers to a test."""

from __future__ import annotations

from pathlib import Path

from xstream import InputError
from yabench.answers import read_answers
from yabench.csrbench import CSRBENCH
from yabench.judge import Judgement, judge
from yabench.oracle import SparqlOracle
from yabench.policy import judge_any
from yabench.stream import read_rdf_stream
from yabench.windows import Windowing

__all__ = ["check"]


def check(
    test: str,
    stream: Path,
    answers: Path,
    gracious: bool = False,
    policy: str | None = None,
    only_new: bool | None = None,
) -> Judgement:
    """Judge the answers in a file to a built-in test over the stream in a file."""
    known = CSRBENCH.get(test.lower())
    if known is None:
        raise InputError(f"there is no test {test!r}: choose {', '.join(CSRBENCH)}")
    # `only_new` is a property of content-change, so it selects that policy.
    policy = policy or ("content-change" if only_new is not None else None)
    windowing = Windowing(known.size_ms, known.slide_ms, policy or "window-close", bool(only_new))
    given = read_answers(answers)
    oracle = SparqlOracle(read_rdf_stream(stream), known.query)
    if policy is None:
        return judge_any(oracle, windowing, given, gracious)
    return judge(oracle, windowing, given, gracious)
