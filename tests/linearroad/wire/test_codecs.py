"""Every wire gives back what was sent, however it is cut into pieces, and as the reference does."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.schema import FIELDS
from linearroad.wire import WIRES
from linearroad.wire.format import Answers
from linearroad.wire.thesis import TupleAnswers

from tests.linearroad.wire.pipes import cut_at, sent
from tests.reference import linearroad_wires as reference

INT32 = st.integers(-(2**31), 2**31 - 1)
ROWS = st.lists(st.lists(INT32, min_size=FIELDS, max_size=FIELDS), max_size=40)
ANSWERS = st.lists(
    st.tuples(st.integers(0, 4), INT32, INT32, INT32, st.integers(-(10**17), 10**17)), max_size=40
)
CUTS = st.lists(st.integers(0, 10**6), max_size=6)


def joined(parts: Any) -> bytes:
    return b"".join(memoryview(part).tobytes() for part in parts)


def block_of(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array(rows, np.int32).reshape(-1, FIELDS).T.copy()


def columns_of(answers: Sequence[reference.Answer]) -> list[np.ndarray]:
    types = (np.int8, np.int32, np.int32, np.int32, np.int64)
    found = zip(*answers, strict=True) if answers else [()] * 5
    return [np.array(column, dtype) for column, dtype in zip(found, types, strict=True)]


def plain(kind: int, time: int, who: int, value: int, amount: int) -> reference.Answer:
    """An answer without the numbers that its kind does not have."""
    return kind, time, who, 0 if kind == 3 else value, 0 if kind == 1 else amount


def told(answers: list[Answers]) -> list[reference.Answer]:
    return [
        row
        for some in answers
        for row in zip(*(c.tolist() for c in (some.kind, some.time, some.who, some.value,
                                              some.amount)), strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("wire", ["flat", "arrow"])
@settings(max_examples=25, deadline=None)
@given(rows=ROWS, cuts=CUTS)
def test_rows_arrive_as_they_were_sent(wire: str, rows: list[list[int]], cuts: list[int]) -> None:
    encode = WIRES[wire].row_encoder()
    data = joined(encode(block_of(rows))) + WIRES[wire].last_rows()
    if wire == "flat":
        assert data == reference.rows_as_lines(rows)
    rejects: list[Any] = []
    with sent(cut_at(data, cuts)) as far:
        blocks = WIRES[wire].rows(far, lambda *reject: rejects.append(reject))
        found = [row for block in blocks if block is not None for row in block.T.tolist()]
    assert found == rows
    assert not rejects


@settings(max_examples=25, deadline=None)
@given(rows=ROWS, cuts=CUTS, kinds=st.lists(st.sampled_from([0, 2, 3, 4]), min_size=40))
def test_tuples_of_the_thesis_are_those_of_the_reference(
    rows: list[list[int]], cuts: list[int], kinds: list[int]
) -> None:
    for row, kind in zip(rows, kinds, strict=False):
        row[0] = kind
    wire = WIRES["thesis"]
    data = joined(wire.row_encoder()(block_of(rows)))
    assert data == b"".join(reference.tuple_of_row(row) for row in rows)
    with sent(cut_at(data, cuts)) as far:
        blocks = wire.rows(far, lambda *_: None)
        again = [row for block in blocks if block is not None for row in block.T.tolist()]
    assert b"".join(reference.tuple_of_row(row) for row in again) == data


@pytest.mark.parametrize("wire", ["flat", "arrow"])
@settings(max_examples=25, deadline=None)
@given(answers=ANSWERS, cuts=CUTS, arrival_ms=st.integers(0, 10**9))
def test_answers_arrive_as_they_were_sent(
    wire: str, answers: list[reference.Answer], cuts: list[int], arrival_ms: int
) -> None:
    answers = [plain(*answer) for answer in answers]
    data = joined(WIRES[wire].answer_encoder()(*columns_of(answers))) + WIRES[wire].last_answers()
    with sent(cut_at(data, cuts)) as far:
        found = [deepcopy(some) for some in WIRES[wire].answers(far) if some is not None]
    assert told(found) == answers
    text = b"".join(WIRES[wire].lines(some, arrival_ms).tobytes() for some in found).decode()
    assert text.splitlines() == [reference.line_of_answer(answer, arrival_ms) for answer in answers]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text("0123456789,-.e \r", max_size=60),
            ANSWERS.map(lambda some: reference.line_of_answer(some[0], 1500) if some else "2,1"),
            st.integers(-(10**18), 10**18).map(lambda kind: f"{kind},7,0,0,40,0"),
        ),
        max_size=20,
    ),
    CUTS,
)
def test_a_line_is_an_answer_where_the_reference_says_so(lines: list[str], cuts: list[int]) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    with sent(cut_at(data, cuts)) as far:
        found = [some for some in WIRES["flat"].answers(far) if some is not None]
    expected = [reference.answer_of_line(line.removesuffix("\r")) for line in lines]
    assert told(found) == [answer for answer in expected if answer is not None]
    malformed = [text for some in found for text in some.malformed]
    assert malformed == [
        line.removesuffix("\r")
        for line, answer in zip(lines, expected, strict=True)
        if answer is None
    ]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, 5), INT32, INT32, INT32, INT32), max_size=30),
    CUTS,
    st.integers(0, 10**9),
)
def test_tuples_of_answers_are_written_after_their_arrival(
    tuples: list[tuple[int, ...]], cuts: list[int], arrival_ms: int
) -> None:
    wire = WIRES["thesis"]
    data = np.array(tuples, "<i4").tobytes()
    with sent(cut_at(data, cuts)) as far:
        found = [some for some in wire.answers(far) if some is not None]
    assert all(isinstance(some, TupleAnswers) for some in found)
    text = b"".join(wire.lines(some, arrival_ms).tobytes() for some in found).decode()
    stamp = f"{arrival_ms // 1000}.{arrival_ms % 1000:03}"
    good = [row for row in tuples if 0 <= row[0] <= 4]
    assert text.splitlines() == [f"{stamp},{','.join(map(str, row))}" for row in good]
    bad = [text for some in found for text in some.malformed]
    assert bad == [",".join(map(str, row)) for row in tuples if not 0 <= row[0] <= 4]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4), INT32, INT32, st.integers(0, 199), st.integers(-(2**31), 2**31 - 1)
        ),
        max_size=30,
    )
)
def test_answers_by_the_thesis_are_tuples_of_the_reference(answers: list[reference.Answer]) -> None:
    data = joined(WIRES["thesis"].answer_encoder()(*columns_of(answers)))
    assert data == b"".join(reference.tuple_of_answer(answer) for answer in answers)
