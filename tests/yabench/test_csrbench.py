"""The recorded answers of two engines to CSRBench get the verdicts that are known of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from yabench.answers import read_answers
from yabench.bindings import Bag, binding_of
from yabench.checks import check
from yabench.cli import app
from yabench.csrbench import CSRBENCH
from yabench.oracle import SparqlOracle
from yabench.stream import Literal, read_rdf_stream, triple_line
from yabench.windows import Scope, Windowing

import xstream as xs
from tests.reference import yabench as slow

pytest.importorskip("pyoxigraph")
STREAM = "csrbench-inputstream.n3t.xz"
SSW = "http://knoesis.wright.edu/ssw/"
OM = f"{SSW}ont/sensor-observation.owl#"


def verdict(data: Path, engine: str, number: int, gracious: bool) -> Any:
    answers = data / f"{engine}-answer-{number}.json"
    return check(f"csrbench-q{number}", data / STREAM, answers, gracious)


@pytest.mark.yabench_data
@pytest.mark.parametrize("number", range(1, 8))
def test_c_sparql_gets_its_verdict(yabench_data: Path, number: int) -> None:
    strict = verdict(yabench_data, "csparql", number, gracious=False)
    assert strict.right == (number in (1, 4, 6, 7))
    assert strict.windowing.policy == "window-close"
    if number in (2, 3):
        assert "shifted" in strict.finding
        gracious = verdict(yabench_data, "csparql", number, gracious=True)
        assert gracious.right
        assert "once borders may move" in gracious.finding
    if number == 5:
        wrong = sorted(window.recall for window in strict.windows if not window.right)
        assert wrong == pytest.approx([2 / 3, 2 / 3, 3 / 4, 3 / 4])
        assert "lost" in strict.finding


@pytest.mark.yabench_data
@pytest.mark.parametrize("number", range(1, 8))
def test_cqels_gets_its_verdict(yabench_data: Path, number: int) -> None:
    strict = verdict(yabench_data, "cqels", number, gracious=False)
    assert strict.right == (number in (1, 2, 3, 5))
    assert (strict.windowing.policy, strict.windowing.only_new) == ("content-change", True)
    if number == 6:
        assert "had left the window" in strict.finding


def records(stream: Path) -> list[dict[str, Any]]:
    """The observations of a stream, read without the code under test but for the lines."""
    facts: dict[str, dict[str, Any]] = {}
    times: dict[str, int] = {}
    for time, triples in read_rdf_stream(stream).items.items():
        for subject, predicate, value in triples:
            plain = float(value.text) if isinstance(value, Literal) and OM in predicate else value
            facts.setdefault(subject, {})[predicate.split("#")[-1]] = plain
            times[subject] = time
    return [
        {
            "time": times[subject],
            "observation": subject,
            "station": found["procedure"],
            "property": found["observedProperty"].split("#_")[-1],
            "value": facts[found["result"]]["floatValue"],
        }
        for subject, found in facts.items()
        if "procedure" in found
    ]


@pytest.mark.yabench_data
@pytest.mark.parametrize("number", range(1, 8))
def test_the_oracle_agrees_with_plain_python_over_records(yabench_data: Path, number: int) -> None:
    test = CSRBENCH[f"csrbench-q{number}"]
    oracle = SparqlOracle(read_rdf_stream(yabench_data / STREAM), test.query)
    items = records(yabench_data / STREAM)
    for window in Windowing(test.size_ms, test.slide_ms).windows(33_000):
        content = [item for item in items if window.scope.start <= item["time"] < window.end]
        expected = Bag(map(binding_of, slow.csrbench(number, content)))
        assert oracle.results(window.scope) == expected


def test_lines_of_a_stream_are_read_back(tmp_path: Path) -> None:
    triples = [
        (f"{SSW}a", f"{OM}floatValue", Literal("1.5", "http://www.w3.org/2001/XMLSchema#float")),
        (f"{SSW}a", f"{OM}result", f"{SSW}b"),
        ("_:x", f"{OM}label", Literal('say "hi"\n\\', language="en")),
    ]
    file = tmp_path / "stream.n3t"
    file.write_text("".join(triple_line(triple, 7) + "\n" for triple in triples))
    assert read_rdf_stream(file).items == {7: triples}


@pytest.mark.parametrize(
    "end", ['"7"', '. "7"', '"7" .', '"7"^^<http://www.w3.org/2001/XMLSchema#long>']
)
def test_the_dot_of_n_triples_may_stand_before_the_time_or_behind(tmp_path: Path, end: str) -> None:
    file = tmp_path / "stream.n3t"
    file.write_text(f"<a:s> <a:p> <a:o> {end}\n\n# text\n<a:s> <a:p> 1.5 {end}\r\n")
    value = Literal("1.5", "http://www.w3.org/2001/XMLSchema#decimal")
    triples = [("a:s", "a:p", "a:o"), ("a:s", "a:p", value)]
    assert read_rdf_stream(file).items == {7: triples}


def one_item(tmp_path: Path) -> Path:
    file = tmp_path / "stream.n3t"
    kind = "http://www.w3.org/2001/XMLSchema#float"
    triples = [
        ("o", "procedure", f"{SSW}S"),
        ("o", "observedProperty", f"{SSW}ont/weather.owl#_AirTemperature"),
        ("o", "result", f"{SSW}r"),
        ("r", "floatValue", Literal("81", kind)),
    ]
    lines = (triple_line((SSW + s, OM + p, o), 500) for s, p, o in triples)
    file.write_text("\n".join(lines).replace('"81"^^<', "81^^").replace("float>", "float"))
    return file


def test_the_command_prints_json(tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    bindings = [{"sensor": "ssw:S", "obs": "ssw:o"}]
    answers.write_text(json.dumps([{"timestamp": 1000, "bindings": bindings}]))
    command = ["check", "--test", "csrbench-q2", "--stream", str(one_item(tmp_path))]
    result = CliRunner().invoke(app, [*command, "--answers", str(answers), "--json"])
    found = json.loads(result.stdout)
    assert found["right"] is True
    (window,) = found["windows"]
    shown = {key: window[key] for key in ("end", "precision", "recall", "actual", "expected")}
    assert shown == {"end": 1000, "precision": 1, "recall": 1, "actual": 1, "expected": 1}
    assert window["delay_ms"] == 0
    assert len(read_answers(answers)) == 1


def test_the_command_fails_where_an_answer_is_wrong(tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text("[]")
    command = ["check", "--test", "csrbench-q2", "--stream", str(one_item(tmp_path))]
    result = CliRunner().invoke(app, [*command, "--answers", str(answers)])
    assert result.exit_code == 1
    assert re.search(r"0-1000 +1\.000 +0\.000 +0 +1  -", result.stdout)
    assert "no bindings at all" in result.stdout


@pytest.mark.parametrize("line", ["a b c", "<a> <b> <c>", '<a> <b> c^ "1"', '<a> <b> <c> "x"'])
def test_a_stream_that_cannot_be_read_is_refused_by_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "stream.n3t"
    file.write_text(f'<a:s> <a:p> <a:o> "0"\n{line}\n')
    with pytest.raises(xs.InputError, match="line 2"):
        read_rdf_stream(file)


def test_a_test_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(xs.InputError, match="csrbench-q7"):
        check("csrbench-q8", tmp_path, tmp_path)


def test_a_query_sees_only_the_items_of_its_range(tmp_path: Path) -> None:
    oracle = SparqlOracle(read_rdf_stream(one_item(tmp_path)), CSRBENCH["csrbench-q4"].query)
    values = [dict(next(iter(oracle.results(Scope(0, end)))).numbers) for end in (500, 501)]
    assert values == [{"avg": 0.0}, {"avg": 81.0}]
