"""Digests locate differences: the expressway, the minute and, for a single answer, its vehicle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.operators.digests import DIGEST_WIDTH, KINDS, weight
from linearroad.output.digests import differences, read_digests, unshifted, write_digests

from xstream.errors import InputError

ANSWER = st.tuples(
    st.integers(0, KINDS - 1), st.integers(0, 299), st.integers(0, 2**30),
    st.integers(-1, 100), st.integers(0, 2**40),
)  # fmt: skip
ANSWERS = st.lists(ANSWER, min_size=1, max_size=30, unique=True)
MINUTES = 5


def digest(answers: list[tuple[int, ...]], by: int = 0) -> np.ndarray:
    """Digests as the engine computes them: (minute, kind, 4), with all numbers shifted."""
    sums = np.zeros((MINUTES, KINDS, DIGEST_WIDTH), np.int64)
    with np.errstate(over="ignore"):
        for kind, time, who, value, amount in answers:
            w = np.int64(weight.py_func(kind, time, value, np.int64(amount)))
            whom = np.int64(who + by)
            sums[time // 60, kind] += [1, w, w * whom, w * whom * whom]
    return sums


@given(answers=ANSWERS, by=st.integers(0, 2**30))
@settings(deadline=None)
def test_a_copys_digest_is_its_originals_without_the_shift(answers: list, by: int) -> None:
    np.testing.assert_array_equal(
        unshifted(digest(answers, by), by, by), digest(answers).view(np.uint64)
    )


@given(answers=ANSWERS, data=st.data())
@settings(deadline=None)
def test_one_answer_that_differs_is_located(answers: list, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(answers) - 1))
    how = data.draw(st.sampled_from(["missing", "twice", "different"]))
    kind, time, who, value, amount = answers[at]
    changed = list(answers)
    if how == "missing":
        del changed[at]
    elif how == "twice":
        changed.append(answers[at])
    else:
        changed[at] = (kind, time, who, value, amount + 1)
    right = digest(answers).view(np.uint64)[None]
    found = np.concatenate([right, right, digest(changed).view(np.uint64)[None]])
    wrong, (difference,) = differences(found, right)
    assert wrong == 1
    assert (difference.expressway, difference.minute, difference.kind) == (2, time // 60 + 1, kind)
    assert difference.who == who
    word = {"missing": "is missing", "twice": "is one too many", "different": "differs"}[how]
    assert difference.sentence().endswith(word)
    assert f"{who:,} of the original" in difference.sentence()


def test_several_that_differ_are_counted() -> None:
    answers = [(0, 61, vid, 30, 100) for vid in range(10)]
    right = digest(answers).view(np.uint64)[None]
    found = digest(answers[3:]).view(np.uint64)[None]
    wrong, (difference,) = differences(found, right)
    assert (wrong, difference.given, difference.expected, difference.who) == (1, 7, 10, None)
    assert difference.sentence() == (
        "expressway 0, minute 2: 7 toll notifications where 10 are right, or others"
    )


def test_equal_digests_do_not_differ() -> None:
    right = digest([(4, 7, 1, 2, 3)]).view(np.uint64)[None]
    assert differences(np.tile(right, (4, 1, 1, 1)), right) == (0, [])


def test_digests_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = np.stack([digest([(k, 60 * k, 5, 6, 7)]) for k in range(3)]).view(np.uint64)
    write_digests(tmp_path / "digests.parquet", found)
    np.testing.assert_array_equal(read_digests(tmp_path / "digests.parquet", 3, MINUTES), found)
    with pytest.raises(InputError, match="does not contain these digests"):
        read_digests(tmp_path / "digests.parquet", 2, MINUTES)
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(InputError, match="does not contain these digests"):
        read_digests(tmp_path / "bad.parquet", 3, MINUTES)


def test_digests_of_many_expressways_are_read_as_they_were_written(tmp_path: Path) -> None:
    shape = (123, 3, KINDS, DIGEST_WIDTH)
    digests = np.random.default_rng(4).integers(0, 2**63, shape).astype(np.uint64)
    digests[70, 1] = 0
    write_digests(tmp_path / "digests.parquet", digests)
    found = read_digests(tmp_path / "digests.parquet", *shape[:2])
    np.testing.assert_array_equal(found, digests)
