"""Bindings are compared by what they mean, as multisets."""

from __future__ import annotations

import contextlib
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yabench.answers import answer_of, read_answers
from yabench.bindings import Bag, binding_of, f1_of, matched, score

import xstream as xs
from tests.reference import yabench as slow

NUMBERS = st.sampled_from([0.0, 1.0, 1.0 + 6e-10, 1.0 + 1.2e-9, 1.0 + 1.8e-9, -5.0, 1e300])
ROWS = st.fixed_dictionaries(
    {"a": st.sampled_from(["x", "y"]), "v": NUMBERS}, optional={"w": NUMBERS}
)


@given(st.lists(ROWS, max_size=5), st.lists(ROWS, max_size=5))
def test_bindings_match_as_often_as_the_best_of_all_pairings(
    expected: list[dict[str, Any]], actual: list[dict[str, Any]]
) -> None:
    one, two = (Bag(map(binding_of, rows)) for rows in (expected, actual))
    assert matched(one, two) == slow.most_pairs(expected, actual)
    found, right = score(one, two), slow.precision_recall(expected, actual)
    assert (found.precision, found.recall) == pytest.approx(tuple(map(float, right)))
    assert f1_of(matched(one, two), found.expected, found.actual) == float(slow.f1(*right))
    assert (found.actual, found.expected) == (len(actual), len(expected))


@pytest.mark.parametrize(
    "term",
    [
        43,
        43.0,
        "43",
        "43.",
        "4.3e1",
        '"43"^^<http://www.w3.org/2001/XMLSchema#integer>',
        {"type": "literal", "value": "43"},
        {"type": "typed-literal", "value": "43.0e0", "datatype": "xsd:double"},
        {"value": 43},
    ],
)
def test_a_number_is_compared_as_a_number_however_it_is_written(term: Any) -> None:
    assert binding_of({"v": term}) == binding_of({"?v": 43})


@pytest.mark.parametrize(
    "term",
    [
        "http://knoesis.wright.edu/ssw/System_A",
        "<http://knoesis.wright.edu/ssw/System_A>",
        "ssw:System_A",
        {"type": "uri", "value": "http://knoesis.wright.edu/ssw/System_A"},
        {"type": "IRI", "value": "ssw:System_A"},
    ],
)
def test_an_iri_may_have_brackets_or_a_prefix(term: Any) -> None:
    expected = "http://knoesis.wright.edu/ssw/System_A"
    assert binding_of({"s": term, "unbound": None}).texts == (("s", expected),)


def test_an_iri_that_looks_like_a_number_is_no_number() -> None:
    assert binding_of({"s": {"type": "uri", "value": "43"}}) != binding_of({"s": 43})


@pytest.mark.parametrize(
    "text",
    [
        '{"relations": [{"timestamp": "1000", "results": {"bindings": [{"timestamp": 1, '
        '"binding": {"a": {"type": "literal", "value": "1"}}}]}}]}',
        '{"timestamp": 1000, "bindings": [{"a": 1}]}',
        '[{"timestamp": 1000.0, "bindings": [{"?a": "1.0"}]}]',
        '{"ready": true}\n{"timestamp": 1000, "columns": {"a": [1]}}\n',
        '{"bindings": [{"timestamp": 1000, "binding": {"a": 1}}], "timestamp": null}',
    ],
)
def test_answers_are_read_in_every_form(tmp_path: Path, text: str) -> None:
    file = tmp_path / "answers.json"
    file.write_text(text)
    (answer,) = read_answers(file)
    assert (answer.named_ms, answer.bindings) == (1000, Bag([binding_of({"a": 1})]))


@pytest.mark.parametrize(
    "text",
    ["", "nothing", "3", "[1]", '{"relations": 3}', '[{"timestamp": "x"}]', '[{"bindings": 1}]',
     '[{"bindings": [[1]]}]', '[{"timestamp": 1e300}]', '[{"bindings": [{"a": [1]}]}]',
     '[{"columns": {"a": [1], "b": []}}]', '{"bindings": [{"a": {"type": "uri"}}]}',
     '{"timestamp": 1, "result": [{"a": 1}]}', '{"relation": []}'],
)  # fmt: skip
def test_answers_that_cannot_be_read_are_refused_with_the_name_of_the_file(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "answers.json"
    file.write_text(text)
    if text == "":
        assert read_answers(file) == []
        return
    with pytest.raises(xs.InputError, match=r"answers\.json"):
        read_answers(file)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(
                        ["timestamp", "bindings", "results", "binding", "value", "type",
                         "columns", "head", "vars", "arrival_ms"]), inner, max_size=4),
                    max_leaves=12))  # fmt: skip
def test_garbage_is_read_or_refused(data: Any) -> None:
    if isinstance(data, dict):
        with contextlib.suppress(xs.InputError):
            answer_of(json.loads(json.dumps(data)))


SYSTEM = "http://knoesis.wright.edu/ssw/System_1"


@pytest.mark.parametrize(
    "term",
    [
        {"type": "uri", "value": SYSTEM}, {"type": "IRI", "value": f"<{SYSTEM}>"},
        {"type": "uri", "value": "ssw:System_1"}, {"value": ":System_1"},
        SYSTEM, f"<{SYSTEM}>", "ssw:System_1", ":System_1",
    ],
)  # fmt: skip
def test_an_iri_is_the_same_abbreviated_or_not(term: object) -> None:
    assert binding_of({"s": term}) == binding_of({"s": SYSTEM})


XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    "term",
    [
        79, 79.0, "79", "79.0", "7.9e1", "+79", " 79 ", '"79"', f'"79"^^<{XSD}float>',
        '"79"^^xsd:integer', "79^^xsd:float", f"79^^{XSD}float", f"79.0^^<{XSD}double>",
        {"type": "literal", "value": "79"}, {"type": "typed-literal", "value": "79.0e0"},
        {"type": "literal", "datatype": f"{XSD}integer", "value": "79"}, {"value": 79},
        {"type": "literal", "value": f"79^^{XSD}float"},
        {"type": "literal", "value": f'"79"^^<{XSD}float>'},
    ],
)  # fmt: skip
def test_a_number_is_the_same_as_text_or_typed(term: object) -> None:
    assert binding_of({"v": term}) == binding_of({"v": 79})


def test_not_a_number_equals_itself() -> None:
    typed = {"type": "literal", "value": "NaN", "datatype": f"{XSD}double"}
    assert binding_of({"v": float("nan")}) == binding_of({"v": typed})


def test_many_bindings_are_matched_where_a_few_are_wrong() -> None:
    """Comparing each with each would take minutes."""
    rows = [{"s": number % 100, "o": number, "v": number / 7} for number in range(30_000)]
    given_rows = [{**row, "v": row["v"] * (1 + 1e-12)} for row in rows[:-100]]
    given_rows += [{**row, "o": -1 - row["o"]} for row in rows[:100]]
    expected, actual = (Bag(map(binding_of, each)) for each in (rows, given_rows))
    assert matched(expected, actual) == 29_900


@pytest.mark.parametrize("term", ["79 F", "seventy-nine", {"type": "literal", "value": "x^^y z"}])
def test_other_texts_are_no_numbers(term: object) -> None:
    assert not binding_of({"v": term}).numbers


def test_results_without_a_time_are_divided_by_those_of_their_bindings(tmp_path: Path) -> None:
    rows = [{"timestamp": time, "binding": {"v": value}}
            for time, value in ((2000, 1), (1000, 2), (2000, 3))]  # fmt: skip
    file = tmp_path / "answers.json"
    file.write_text("\ufeff" + json.dumps({"head": {"vars": ["v"]}, "results": {"bindings": rows}}))
    found = read_answers(file)
    assert [(each.named_ms, each.bindings.total()) for each in found] == [(2000, 2), (1000, 1)]
    packed = tmp_path / "answers.json.xz"
    packed.write_bytes(lzma.compress(file.read_bytes()))
    assert [each.bindings for each in read_answers(packed)] == [each.bindings for each in found]
