"""The tables behind the vehicles: who is on the road, this minute's sums, places for batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.queries.operators import batches, ontheroad

VEHICLES = st.tuples(st.integers(0, 40), st.integers(0, 2))
STEPS = st.lists(st.tuples(VEHICLES, st.integers(-1, 29)), max_size=120)


@given(steps=STEPS, size=st.sampled_from([53, 64, 97]))
@settings(deadline=None)
def test_the_road_remembers_phases_as_a_dictionary_does(steps: list, size: int) -> None:
    vids, phases = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    known: dict[tuple[int, int], int] = {}
    for (vid, slot), phase in steps:
        if phase < 0:
            ontheroad.forget(vids, phases, vid, slot)
            known.pop((vid, slot), None)
        elif len(known) < size - 1 or (vid, slot) in known:
            new = ontheroad.set_phase(vids, phases, vid, slot, phase)
            assert new == ((vid, slot) not in known)
            known[vid, slot] = phase
        assert (vids != -1).sum() == len(known)
    for vid in range(41):
        for slot in range(3):
            found = ontheroad.known_phase(vids, phases, vid, slot)
            assert found == known.get((vid, slot), -1)


SPEEDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-5, 100)))


@given(reports=SPEEDS)
@settings(deadline=None)
def test_gains_add_up_to_the_averages_of_the_vehicles(reports: list) -> None:
    sums = np.zeros(64, ontheroad.SUM)
    gained: dict[int, float] = {}
    vehicles: dict[int, int] = {}
    for vid, key, spd in reports:
        gain, new = ontheroad.add_speed(sums, vid, key, spd)
        gained[key] = gained.get(key, 0.0) + gain
        vehicles[key] = vehicles.get(key, 0) + new
    for key, total in gained.items():
        speeds = {vid: [s for v, k, s in reports if (v, k) == (vid, key)] for vid in range(4)}
        averages = [np.mean(found) for found in speeds.values() if found]
        assert vehicles[key] == len(averages)
        assert abs(total - sum(averages)) < 1e-9


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
