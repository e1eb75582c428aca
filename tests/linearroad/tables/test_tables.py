"""Tables of the operators: vehicles on the road, the minute's sums, batches, the ledger."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.operators.copies import shifted_accounts
from linearroad.schema import column
from linearroad.tables import batches, ledger, speeds

import xstream as xs

#: Any speed that an input may hold; a vehicle reports at most once in each second of a minute.
ANY_SPEED = st.one_of(st.integers(-5, 100), st.integers(-(2**31), 2**31 - 1))
SPEEDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), ANY_SPEED), max_size=60)


@given(reports=SPEEDS)
@settings(deadline=None)
def test_gains_add_up_to_the_averages_of_the_vehicles(reports: list) -> None:
    sums = np.full(64, np.array((-1, 0), speeds.SUM))
    gained: dict[int, float] = {}
    vehicles: dict[int, int] = {}
    for vid, key, spd in reports:
        gain, new = speeds.add_speed(sums, vid, key, spd)
        gained[key] = gained.get(key, 0.0) + gain
        vehicles[key] = vehicles.get(key, 0) + new
    for key, total in gained.items():
        by_vid = {vid: [s for v, k, s in reports if (v, k) == (vid, key)] for vid in range(4)}
        averages = [np.mean(found) for found in by_vid.values() if found]
        assert vehicles[key] == len(averages)
        assert abs(total - sum(averages)) < 1e-9 * max(1, max(abs(s) for _, _, s in reports))


BATCHES = st.lists(st.integers(0, 12), min_size=1, max_size=60)


@given(rows=BATCHES, size=st.integers(20, 60))
@settings(deadline=None)
def test_batches_never_overlap_and_only_a_full_array_has_no_place(rows: list, size: int) -> None:
    base, count = np.zeros(batches.RING, np.int64), np.zeros(batches.RING, np.int64)
    for second, wanted in enumerate(rows):
        s = second % batches.RING
        count[s] = 0
        count[(second - 5) % batches.RING] = 0  # only the last few are kept
        at = batches.free_place(base, count, size, wanted)
        taken = np.zeros(size, bool)
        for k in range(batches.RING):
            taken[base[k] : base[k] + count[k]] = True
        room = "".join("x" if used else "." for used in taken)
        if at < 0:
            assert "." * wanted not in room
            continue
        assert at + wanted <= size
        assert not taken[at : at + wanted].any()
        base[s], count[s] = at, wanted


@xs.kernel(state=ledger.LEDGER, out={"bal": column("int64")})
def charged(vid, amount, asked, state, out):  # type: ignore[no-untyped-def]
    charged = ledger.charge_all(ledger.ledger_of(state), vid, amount)
    answers = np.empty(len(asked), np.int64)
    for i in range(len(asked)):
        answers[i] = ledger.balance_of(charged, np.int64(asked[i]))
    out.emit_at(0, answers)


VIDS = st.one_of(st.integers(0, 100), st.integers(0, 2**31 - 1))
CHARGES = st.lists(st.tuples(VIDS, st.integers(1, 2**40)), max_size=200)


@given(charges=CHARGES, others=st.lists(VIDS, max_size=10))
@settings(deadline=None, max_examples=40)
def test_the_ledger_adds_up_as_a_dictionary_does(charges: list, others: list) -> None:
    balances: dict[int, int] = {}
    for vid, amount in charges:
        balances[vid] = balances.get(vid, 0) + amount
    asked = [*balances, *others]
    query = xs.Query()
    schema = xs.schema(
        {"v": xs.Segment(np.int32), "a": xs.Segment(np.int64), "q": xs.Segment(np.int32)}
    )
    columns = [vid for vid, _ in charges], [amount for _, amount in charges], asked
    tuples = [
        tuple(
            xs.SigSeg(np.array(column, dtype))
            for column, dtype in zip(columns, ("int32", "int64", "int32"), strict=True)
        )
    ]
    out = query.source(xs.io.iterable(tuples, out=schema)).iterate(charged, name="ledger").collect()
    run = query.run()
    found = np.asarray(run[out][0]).tolist()
    assert found == [balances.get(vid, 0) for vid in asked]
    kept = run.state("ledger")
    by = 1_000_003 if max(asked, default=0) < 2**30 else 0
    moved = shifted_accounts(kept, by, 0)
    for vid in asked:
        there = ledger.Ledger(*(moved[name] for name in ledger.LEDGER))
        assert ledger.balance_of(there, np.int64(vid + by)) == balances.get(vid, 0)


def test_dense_vehicles_cost_little_more_than_their_four_bytes() -> None:
    many = 300_000
    query = xs.Query()
    schema = xs.schema(
        {"v": xs.Segment(np.int32), "a": xs.Segment(np.int64), "q": xs.Segment(np.int32)}
    )
    row = (
        xs.SigSeg(np.random.default_rng(1).permutation(many).astype(np.int32)),
        xs.SigSeg(np.ones(many, np.int64)),
        xs.SigSeg(np.arange(many, dtype=np.int32)),
    )
    out = query.source(xs.io.iterable([row], out=schema)).iterate(charged, name="ledger").collect()
    run = query.run()
    assert (np.asarray(run[out][0]) == 1).all()
    assert sum(array.nbytes for array in run.state("ledger").values()) < 4.6 * many


def places_of(vehicles: list[int], finished: set[int]) -> batches.Reports:
    """A batch of reports of ascending vehicles; some trips are finished."""
    over = [batches.OVER << batches.FATE_AT if vid in finished else 0 for vid in vehicles]
    return batches.Reports(
        np.array(vehicles, np.int32), np.arange(len(vehicles), dtype=np.int32),
        np.array(over, np.int32), np.zeros(0, np.int32),
    )  # fmt: skip


NUMBERS = st.lists(st.integers(0, 60), unique=True, max_size=50).map(sorted)


@given(now=NUMBERS, before=NUMBERS, finished=st.sets(st.integers(0, 60), max_size=5))
@settings(deadline=None, max_examples=200)
def test_batches_are_joined_as_dictionaries_are(now: list, before: list, finished: set) -> None:
    old, begin = places_of(before, finished), 7
    links, gone = np.empty(len(now), np.int32), np.empty(len(before), np.int32)
    last = batches.no_last(len(now))
    starts, many = batches.merge_join(
        np.array(now, np.int32), old.vid, old.where, old.bits, begin, links, last, gone
    )
    known = {vid: k for k, vid in enumerate(before) if vid not in finished}
    assert links.tolist() == [begin + known[v] if v in known else batches.NEW for v in now]
    assert last.where.tolist() == [known.get(vid, batches.NOWHERE) for vid in now]
    assert starts == len(set(now) - set(known))
    assert sorted(gone[:many]) == sorted(begin + known[vid] for vid in set(known) - set(now))
    for vid in range(61):
        found = batches.find_sorted(old, 0, len(before), vid)
        assert found == (before.index(vid) if vid in before else -1)


def test_balances_beyond_four_bytes_are_kept_apart() -> None:
    query = xs.Query()
    schema = xs.schema(
        {"v": xs.Segment(np.int32), "a": xs.Segment(np.int64), "q": xs.Segment(np.int32)}
    )
    rows = [
        ([5, 6, 5, 2**31 - 1], [2**31 - 2, 3, 1, 2**40]),
        ([5, 6], [7, 2**31 - 4]),
        ([5, 2**31 - 1, 6], [-(2**31), -(2**40), -1]),
    ]
    tuples = [
        tuple(
            xs.SigSeg(np.array(column, dtype))
            for column, dtype in (
                (vids, np.int32),
                (amounts, np.int64),
                ([5, 6, 2**31 - 1], np.int32),
            )
        )
        for vids, amounts in rows
    ]
    out = query.source(xs.io.iterable(tuples, out=schema)).iterate(charged, name="ledger").collect()
    run = query.run()
    found = [np.asarray(row).tolist() for row in run[out]]
    assert found == [[2**31 - 1, 3, 2**40], [2**31 + 6, 2**31 - 1, 2**40], [6, 2**31 - 2, 0]]
    assert run.state("ledger")["balance"].dtype == np.int32
