"""Queries: what they refuse, what they show, and that they can run any number of times."""

from __future__ import annotations

import dataclasses
import re
import threading
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels


def source(q: xs.Query, dtype: Any = np.float32, **options: Any) -> Any:
    return q.source(xs.io.array(np.arange(64, dtype=dtype), window=8, **options))


def invalid(q: xs.Query) -> str:
    with pytest.raises(xs.GraphError) as caught:
        q.validate()
    with pytest.raises(xs.GraphError):
        q.run()
    return str(caught.value)


def test_a_query_without_a_source() -> None:
    assert invalid(xs.Query("nothing")) == "nothing has no source"


def test_an_operator_whose_tuples_nobody_takes() -> None:
    q = xs.Query()
    source(q).passed(name="lonely")
    assert invalid(q).startswith("lonely, output: its tuples are not used; add a sink")


def test_a_feedback_that_is_never_connected() -> None:
    q = xs.Query()
    back = q.feedback(xs.Segment("f4"), name="back")
    source(q).merge(back).count()
    assert invalid(q) == "back, port 'in': not connected"


def test_feedback_is_connected_once_to_a_stream_that_fits() -> None:
    q, other = xs.Query(), xs.Query()
    src = source(q)
    back = q.feedback(xs.Segment("f4"))
    with pytest.raises(xs.SchemaError, match=r"feedback, port 'in': declared as .*float32.* int64"):
        q.connect(back, src.map(lambda seg: 1, out=int))
    with pytest.raises(xs.GraphError, match="a stream of another query"):
        q.connect(back, source(other))
    with pytest.raises(xs.GraphError, match="is not a feedback of this query"):
        other.connect(back, src)
    with pytest.raises(xs.GraphError, match="array is not a feedback"):
        q.connect(src, src)
    q.connect(back, src.merge(back))
    with pytest.raises(xs.GraphError, match="already connected"):
        q.connect(back, src)


def test_streams_of_another_query() -> None:
    q, other = xs.Query(), xs.Query()
    with pytest.raises(xs.GraphError, match="merge, port 'in1': a stream of another query"):
        source(q).merge(source(other))


def test_schemas_that_do_not_fit_name_operator_and_port() -> None:
    q = xs.Query()
    for options, said in [
        ({"dtype": np.int16}, "segment of int16 by index"),
        ({"rate_hz": 8.0}, "segment of float32 at 8 Hz"),
    ]:
        with pytest.raises(
            xs.SchemaError, match=f"merge, port 'in2': carries {said}, and port 'in'"
        ):
            source(q).merge(source(q), source(q, **options))


def test_sources_and_operators_are_not_confused() -> None:
    q = xs.Query()
    from xstream.ops.basic import Pass

    with pytest.raises(xs.GraphError, match="pass is not a source"):
        q.source(Pass())
    with pytest.raises(xs.GraphError, match=r"pass has 1 input ports \(in\), not 2"):
        q.add(Pass(), (source(q), source(q)))


def test_names_are_unique() -> None:
    q = xs.Query()
    src = source(q)
    src.passed(name="pass 2").count()
    for _ in range(3):
        src.passed().count()
    with pytest.raises(xs.GraphError, match="two operators are named 'pass 2'"):
        src.passed(name="pass 2")
    names = [node.name for node in q.nodes]
    assert len(set(names)) == len(names)
    assert names[:3] == ["array", "pass 2", "count"]
    assert set(q.run().stats) == set(names)


def test_declarations_are_frozen() -> None:
    q = xs.Query()
    out = source(q).filter(kernels.louder, 0.5).collect()
    node = q.nodes[1]
    for thing, field in [(node, "name"), (node.operator, "arguments"), (out, "node")]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, "changed")
    with pytest.raises(dataclasses.FrozenInstanceError):
        q.nodes[0].operator.window = 3  # type: ignore[attr-defined]


def test_drawings_show_every_operator_and_edge() -> None:
    q = xs.Query('with "quotes"')
    src = source(q, rate_hz=8.0)
    back = q.feedback(src.schema)
    merged = src.merge(back, name='a "name"\\')
    q.connect(back, merged.filter(kernels.louder, 0.5))
    merged.count()
    dot = q.to_dot()
    assert dot.startswith('digraph "with \\"quotes\\"" {\n')
    assert '[label="a \\"name\\"\\\\"' in dot
    assert dot.count("->") == 5
    assert 'tooltip="in1: segment of float32 at 8 Hz"' in dot
    assert dot.count("{") == dot.count("}") == 1


def test_labels_of_a_drawing_are_short_and_tooltips_have_the_whole_schema() -> None:
    q = xs.Query()
    record = {f"field_{number}": int for number in range(20)}
    wide = source(q).map(lambda seg: tuple(range(20)), out=record, name="an operator " * 5)
    wide.filter(lambda *fields: True).count()
    dot = q.to_dot()
    labels = re.findall(r'\blabel="([^"]*)"', dot)
    assert max(len(line) for label in labels for line in label.split("\\n")) <= 34
    assert " field_0, field_1, field_2, … \\n 20 fields " in labels
    assert f'tooltip="{wide.schema}"' in dot
    assert len(str(wide.schema)) > 300


def test_a_query_runs_again_and_in_two_threads_at_once() -> None:
    q = xs.Query()
    src = source(q, repeat=50)
    kept = src.iterate(kernels.remember_and_tell).collect()
    python = src.map(lambda seg: seg.start, out=int).collect()
    expected = None
    outcomes: list[Any] = []

    def work() -> None:
        for _ in range(5):
            run = q.run()
            outcomes.append(([(n, np.asarray(s).tolist()) for n, s in run[kept]], run[python]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work()
    expected = outcomes[0]
    assert len(outcomes) == 15
    assert all(outcome == expected for outcome in outcomes)
    assert expected[1] == list(range(0, 3200, 8))


def test_results_are_asked_of_the_right_run() -> None:
    q, other = xs.Query("mine"), xs.Query("other")
    source(q).count()
    foreign = source(other).count()
    run = q.run()
    with pytest.raises(xs.GraphError, match="is not a sink of <Query mine: 2 operators>"):
        run[foreign]
    with pytest.raises(xs.GraphError, match="is not a sink"):
        run["count"]  # type: ignore[index]
    assert repr(run).startswith("<Run of mine: done, 64 samples in ")
