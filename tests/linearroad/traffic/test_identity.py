"""VIDs: dense, and a second trip after the first."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.traffic.identity import TRIP, number_own, vids_of_trips


def table(rng: np.random.Generator, n: int) -> np.ndarray:
    trips = np.zeros(n, TRIP)
    trips["trip"] = np.arange(n) * 2
    trips["dir"] = rng.integers(0, 2, n)
    trips["first"] = np.sort(rng.integers(0, 10_000, n))
    trips["last"] = trips["first"] + 30 * rng.integers(1, 100, n)
    trips["begins"] = rng.random(n) < 0.9
    trips["ends"] = trips["last"] < 10_770
    return trips


@given(seed=st.integers(0, 1000), expressways=st.integers(1, 5), n=st.integers(0, 3000))
@settings(deadline=None, max_examples=30, database=None)
def test_vids_are_dense_and_trips_of_a_vehicle_never_meet(
    seed: int, expressways: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    tables = [table(rng, n + 10 * x) for x in range(expressways)]
    own = [
        number_own(seed, x, (x - 1) % expressways, 0.02, tables[x - 1], tables[x])
        for x in range(expressways)
    ]
    first = np.concatenate(([0], np.cumsum([numbering.vehicles for numbering in own])))
    seen: list[tuple[int, int, int, int]] = []
    for x in range(expressways):
        vids = vids_of_trips(own[x], int(first[x]), own[x - 1], int(first[x - 1 % expressways]))
        if x == 0 and expressways > 1:
            vids = vids_of_trips(own[0], 0, own[-1], int(first[expressways - 1]))
        rows = zip(vids.tolist(), tables[x]["first"], tables[x]["last"], strict=True)
        seen += [(vid, int(a), int(b), x) for vid, a, b in rows]
    assert {vid for vid, *_ in seen} == set(range(int(first[-1])))
    seen.sort()
    for (vid, _, end, _), (other, begin, _, _) in itertools.pairwise(seen):
        assert vid != other or begin >= end + 60


def test_two_in_a_hundred_travel_on_two_expressways() -> None:
    rng = np.random.default_rng(1)
    tables = [table(rng, 20_000) for _ in range(3)]
    own = number_own(7, 1, 0, 0.02, tables[0], tables[1])
    assert len(own.visits) == len(own.visitors) == 400
    assert number_own(7, 0, 0, 0.02, tables[0], tables[0]).visits.size == 0
