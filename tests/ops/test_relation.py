"""relations: read and updated in one order under every scheduler and memory manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.ops.conftest import EVERYWHERE, assert_nothing_lives, shown
from tests.reference import relations
from xstream.testing import list_source

FIELDS = {"time": int, "a": int, "b": int, "x": float, "n": int, "gone": bool}
ROWS = {"a": int, "b": int, "total": float, "most": int, "least": float, "seen": int}
CHANGES = {
    "total": ("add", "x"), "most": ("max", "n"), "least": ("min", "x"), "seen": ("add", 1),
}  # fmt: skip
ZEROS = {"total": 0.0, "most": 0, "least": 0.0, "seen": 0}


@st.composite
def tuples_in_time(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Times do not descend; keys are few, so that they meet."""
    time, rows = draw(st.integers(-5, 5)), []
    for _ in range(draw(st.integers(0, 20))):
        time += draw(st.sampled_from([0, 0, 1, 3]))
        number = st.integers(-3, 3)
        rows.append((time, draw(st.integers(0, 2)), draw(st.integers(-1, 0)), draw(number) / 4,
                     draw(number), draw(st.sampled_from([False, False, True]))))  # fmt: skip
    return rows


def as_dicts(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(FIELDS, row, strict=True)) for row in rows]


def run_everywhere(build: Callable[[xs.Query], tuple[Any, ...]]) -> list[Any]:
    """Builds a query whose sinks and relations have the same results in every mode."""
    expected: Any = None
    for scheduler, memory, burst, debug in EVERYWHERE:
        q = xs.Query()
        wanted = build(q)
        manager = xs.memory_manager(memory)
        run = q.run(scheduler, manager, burst, debug=debug)
        found = [run[each] for each in wanted]
        plain = [
            {n: c.tolist() for n, c in each.items()} if isinstance(each, dict) else shown(each)
            for each in found
        ]
        if expected is None:
            expected, first = plain, found
        assert plain == expected, (scheduler, memory, burst)
        if not any(isinstance(cell, xs.SigSeg) for each in found for row in each
                   for cell in (row if isinstance(row, tuple) else (row,))):  # fmt: skip
            del run, q, wanted
            assert_nothing_lives(manager)
    return first


@settings(max_examples=20)
@given(tuples_in_time(), tuples_in_time(), tuples_in_time())
def test_uses_of_several_streams_are_served_in_their_order(
    changing: list[Any], asking: list[Any], removing: list[Any]
) -> None:
    contents = [{"a": 1, "b": -1, "total": 2.5, "most": 9, "least": -4.0, "seen": 3}]
    rows = [tuple(row[name] for name in ROWS) for row in contents]

    def build(q: xs.Query) -> tuple[Any, ...]:
        table = q.relation("table", ROWS, key=("a", "b"), order="time", contents=rows)
        before, updates, deletes, after = (
            q.source(list_source(tuples, FIELDS)) for tuples in (asking, changing, removing, asking)
        )
        return (
            before.lookup(table, ("most", "total"), found="known").collect(),
            updates.update(table, CHANGES, returning=("seen", "least")).collect(),
            deletes.update(table, CHANGES, delete="gone", returning="total").collect(),
            after.lookup(table, missing="drop").collect(),
            table,
        )

    found = run_everywhere(build)
    reference = relations.Table(("a", "b"), ZEROS, contents)
    values = [(name, how, source) for name, (how, source) in CHANGES.items()]
    expected: list[list[Any]] = [[], [], [], []]
    streams = [as_dicts(rows) for rows in (asking, changing, removing, asking)]
    for port, row in relations.in_order(streams, "time"):
        fields = tuple(row.values())
        if port in (0, 3):
            known, own = reference.look_up(row)
            if port == 0:
                expected[0].append((*fields, known, own["most"], own["total"]))
            elif known:
                expected[3].append((*fields, *own.values()))
        else:
            own = reference.update(row, values, port == 2 and row["gone"])
            added = (own["seen"], own["least"]) if port == 1 else (own["total"],)
            expected[port].append((*fields, *added))
    assert found[:4] == expected
    assert {name: column.tolist() for name, column in found[4].items()} == reference.columns()


@settings(max_examples=15)
@given(tuples_in_time())
def test_one_use_is_served_as_its_tuples_come(rows: list[Any]) -> None:
    """Branches of one stream need no order where only one of them uses the relation."""
    rows = rows[::-1]

    def build(q: xs.Query) -> tuple[Any, ...]:
        table = q.relation("t", {"k": int, "n": int}, key="k")
        src = q.source(list_source(rows, FIELDS))
        src.count()
        return src.update(table, {"n": "n"}, key="a", delete="gone").collect(), table

    found, columns = run_everywhere(build)
    reference = relations.Table(("a",), {"n": 0})
    for row in as_dicts(rows):
        reference.update(row, [("n", "set", "n")], row["gone"])
    assert found == rows
    assert [columns["k"].tolist(), columns["n"].tolist()] == list(reference.columns().values())


def test_relations_grow_and_shrink() -> None:
    rng = np.random.default_rng(3)
    keys, gone = rng.integers(-40_000, 70_000, 60_000), rng.integers(0, 2, 60_000)
    rows = [(int(k), int(k) * 2, bool(g)) for k, g in zip(keys, gone, strict=True)]
    q = xs.Query()
    table = q.relation("t", {"k": int, "v": int}, key="k")
    q.source(list_source(rows, {"k": int, "v": int, "gone": bool})).update(table, delete="gone")
    left = {}
    for k, v, g in rows:
        left.pop(k, None) if g else left.__setitem__(k, v)
    columns = q.run()[table]
    assert dict(zip(columns["k"].tolist(), columns["v"].tolist(), strict=True)) == left


def test_segments_pass_through_and_none_is_kept() -> None:
    segments = [xs.SigSeg(np.arange(4.0) + i, i) for i in range(6)]
    rows = [(i // 2, segment) for i, segment in enumerate(segments)]
    schema = {"time": int, "seg": xs.Segment(np.float64)}
    for scheduler, memory, burst, _ in EVERYWHERE:
        manager = xs.memory_manager(memory)
        q = xs.Query()
        table = q.relation("t", {"time": int, "n": int}, key="time", order="time")
        src = q.source(list_source(rows, schema))
        seen = src.update(table, {"n": ("add", 1)}).count()
        found = q.source(list_source(rows, schema)).lookup(table).collect()
        run = q.run(scheduler, manager, burst)
        assert run[seen] == 6
        assert [(row[0], row[1].start, row[2]) for row in run[found]] == [
            (i // 2, i, 2) for i in range(6)
        ]
        del run, q
        assert_nothing_lives(manager)


def test_a_relation_can_be_read_from_several_threads() -> None:
    rows = [(i, i % 50, 1) for i in range(20_000)]

    def build(q: xs.Query) -> tuple[Any, Any]:
        table = q.relation("t", {"k": int, "n": int}, key="k", order="time")
        a, b = (q.source(list_source(rows, {"time": int, "k": int, "by": int})) for _ in range(2))
        a.update(table, {"n": ("add", "by")})
        return b.lookup(table).aggregate({"s": ("sum", "n")}, by="k").collect(), table

    results = []
    for threads in (1, 2):
        q = xs.Query()
        out, table = build(q)
        run = q.run(threads=threads)
        results.append((run[out], run[table]["n"].tolist()))
    assert results[0] == results[1]
    assert results[0][1] == [400] * 50


# -- wrong use -----------------------------------------------------------------------------------


def declared(**options: Any) -> tuple[xs.Query, Any, Any]:
    q = xs.Query()
    table = q.relation("t", {"k": int, "v": float}, key="k", **options)
    src = q.source(list_source([(1, 2, 0.5)], {"time": int, "k": int, "v": float}), name="src")
    return q, table, src


def test_two_uses_need_an_order() -> None:
    _, table, src = declared()
    src.update(table)
    with pytest.raises(xs.GraphError, match=r"t: a second operator uses the relation.*order="):
        src.lookup(table)


def test_a_use_behind_another_is_refused() -> None:
    q, table, src = declared(order="time")
    src.update(table).select("time", "k").lookup(table).count()
    with pytest.raises(xs.GraphError, match=r"t: a stream that comes from the relation leads back"):
        q.run()


def test_an_order_that_descends_is_an_error() -> None:
    q, table, src = declared(order="time")
    src.update(table)
    rows = list_source([(3, 1), (2, 1)], {"time": int, "k": int})
    q.source(rows).lookup(table).count()
    with pytest.raises(xs.OperatorError, match=r"t, port 'lookup 1'.*2 came behind one with 3"):
        q.run()


def test_a_missing_row_can_be_an_error() -> None:
    q, table, src = declared()
    src.select("k").lookup(table, missing="error").count()
    with pytest.raises(
        xs.OperatorError, match=r"t, port 'lookup', tuple \(2\): no row has the key"
    ):
        q.run()


def test_sums_that_do_not_fit_are_an_error() -> None:
    q = xs.Query()
    table = q.relation("t", {"k": int, "n": int}, key="k")
    q.source(list_source([(1, 2**62), (1, 2**62)], {"k": int, "n": int})).update(
        table, {"n": ("add", "n")}
    )
    with pytest.raises(xs.OperatorError, match=r"t, port 'update'.*does not fit into 64 bits"):
        q.run()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s, t: s.update(t, {"w": "v"}), "t: no value is called 'w' among v"),
        (lambda s, t: s.update(t, {"v": "z"}), "t, update: no field is called 'z' among time"),
        (lambda s, t: s.update(t, {"v": ("mul", "v")}), "value 'v' is set, add, min, max of"),
        (lambda s, t: s.update(t, {"v": None}), "'v' is float64, and cannot be changed by None"),
        (lambda s, t: s.update(t, delete="v"), "t, update: delete names a flag, and not float64"),
        (lambda s, t: s.update(t, key=("k", "time")), r"the key has 1 fields \(k\), not 2"),
        (lambda s, t: s.update(t, key="v"), "field 'v' must be a whole number, not float64"),
        (lambda s, t: s.lookup(t), "t, lookup: the stream has a field 'v' already"),
        (lambda s, t: s.lookup(t, missing="no"), "missing is 'default', 'drop' or 'error'"),
        (lambda s, t: s.select("time").lookup(t), "no field is called 'k' among time"),
        (lambda s, t: s.lookup("t"), "'t' is not a relation of this query"),
        (lambda s, t: s.select("k").update(t), "the stream has none of the fields v"),
    ],
)
def test_uses_that_do_not_fit_are_refused(use: Any, message: str) -> None:
    _, table, src = declared()
    with pytest.raises((xs.SchemaError, xs.GraphError), match=message):
        use(src, table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "z"}, "t: key 'z' is no field of whole numbers"),
        ({"key": "v"}, "t: key 'v' is no field of whole numbers"),
        ({"key": ()}, "t: a relation has a key"),
        ({"key": "k", "contents": [(1,)]}, "a row of the contents has 2 values"),
        ({"key": "k", "contents": {"k": [1]}}, "the contents have the columns k, v"),
        ({"key": "k", "contents": [(1, 0.0), (1, 2.0)]}, "two rows of the contents have the same"),
        ({"key": "k", "contents": {"k": [0.5], "v": [1.0]}}, "column 'k' of the contents is not"),
        ({"key": "k", "contents": {"k": [1, 2], "v": [1.0]}}, "differ in length"),
    ],
)
def test_relations_that_make_no_sense_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(xs.SchemaError, match=message):
        xs.Query().relation("t", {"k": int, "v": float}, **arguments)
    with pytest.raises(xs.SchemaError, match="fields of int64, float64 and bool"):
        xs.Query().relation("t", {"k": np.int8}, key="k")
