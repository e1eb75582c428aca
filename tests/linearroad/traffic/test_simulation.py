"""The simulation: physics that must hold every second, and the stream's invariants
(docs/linear-road-rules.md, section 6).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linearroad.traffic import _kernels_cars as k
from linearroad.traffic.demand import exit_shares
from linearroad.traffic.simulation import Expressway, expressway_key, unpack

from tests.linearroad import reference
from xstream.errors import InputError

seeds = st.integers(0, 2**40)
few = settings(max_examples=4, deadline=None, database=None)


def run(road: Expressway, seconds: int, chunk: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Packed reports, and the second of each."""
    parts, times = [], []
    while road.now < seconds:
        now = road.now
        reports = road.advance(min(chunk, seconds - now))
        parts.append(reports.packed)
        times.append(np.repeat(np.arange(now, road.now), reports.rows_by_second))
    return np.concatenate(parts), np.concatenate(times)


def lanes(road: Expressway) -> list[tuple[int, int, np.ndarray]]:
    return [
        (d, lane, road.road.cars[road.road.order[d, lane, : road.road.counts[d, lane]]])
        for d in range(2)
        for lane in range(5)
    ]


def check_no_overlap(road: Expressway) -> None:
    pairs = {
        frozenset(map(int, row[[k.ACCIDENT_FRONT, k.ACCIDENT_REAR]]))
        for row in road.road.accidents
        if row[k.ACCIDENT_STATE] != k.PLANNED
    }
    for d, lane, cars in lanes(road):
        gaps = cars["x"][:-1] - cars["x"][1:]
        slots = road.road.order[d, lane]
        for i in np.flatnonzero(gaps < k.VEHICLE_FT):
            # Only the two of an accident, until they have parted.
            assert frozenset((int(slots[i]), int(slots[i + 1]))) in pairs, (d, lane, gaps[i])


@few
@given(seed=seeds, crowd=st.sampled_from([0.5, 1.0, 4.0]))
def test_every_second_vehicles_are_conserved_and_none_overlap(seed: int, crowd: float) -> None:
    road = Expressway(seed, 0, 900, demand_share=crowd)
    while road.now < 900:
        # Within a minute slots keep their numbers, so the accident's pair is known.
        road.advance(1)
        begun = int(road.road.demand[road.now])
        assert begun == road.waiting + road.on_road + road.left
        if road.now % 60 != 0 and road.now % 7 == 0:
            check_no_overlap(road)
        for _, lane, cars in lanes(road):
            assert np.all(cars["v"] >= 0.0)
            if lane in (0, 4):
                assert np.all(cars["v"] * k.MPH_PER_FTPS <= 40.0)


@few
@given(seed=seeds, crowd=st.sampled_from([0.7, 1.0, 4.0]))
def test_reports_of_a_trip_keep_the_invariants(seed: int, crowd: float) -> None:
    seconds = 1500
    road = Expressway(seed, 3, seconds, demand_share=crowd)
    packed, time = run(road, seconds)
    fields = unpack(packed)
    order = np.lexsort((time, fields.trip))
    trip, t, lane = fields.trip[order], time[order], fields.lane[order]
    pos, spd, direction = fields.pos[order], fields.spd[order], fields.dir[order]
    seg = pos // 5280
    same = trip[1:] == trip[:-1]
    first, last = np.concatenate(([True], ~same)), np.concatenate((~same, [True]))

    assert np.all(np.diff(t)[same] == 30)
    assert np.all(lane[first] == 0)
    left = road.road.left_at[trip[last]] >= 0
    assert left.any()
    assert np.all(lane[last][left] == 4)
    assert np.all(t[last][~left] >= seconds - 30)
    step = np.where(direction == 0, 1, -1)[1:]
    moved = (np.diff(seg) * step)[same]
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert np.all(direction[1:][same] == direction[:-1][same])
    assert spd.max() <= 100
    assert spd[(lane == 0) | (lane == 4)].max() <= 40
    assert pos.min() >= 0
    assert pos.max() < 528_000
    per_second = np.bincount(time, minlength=seconds)[-300:]
    assert np.isclose(per_second.mean(), road.on_road / 30, rtol=0.2)


@few
@given(seed=seeds, chunk=st.integers(1, 200))
def test_the_same_seed_gives_the_same_reports_however_it_is_cut(seed: int, chunk: int) -> None:
    a, at = run(Expressway(seed, 1, 300), 300)
    b, bt = run(Expressway(seed, 1, 300), 300, chunk)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(at, bt)


def test_another_seed_or_expressway_gives_other_traffic() -> None:
    one, _ = run(Expressway(1, 0, 120), 120)
    for other in (Expressway(2, 0, 120), Expressway(1, 1, 120)):
        packed, _ = run(other, 120)
        assert packed.shape != one.shape or not np.array_equal(packed, one)


def test_accidents_stand_at_one_place_and_are_cleared_in_time() -> None:
    seconds = 2700
    road = Expressway(11, 0, seconds)
    packed, time = run(road, seconds)
    fields = unpack(packed)
    accidents = [row for row in road.road.accidents if row[k.ACCIDENT_STATE] >= k.STANDING]
    assert len(accidents) >= 2
    for row in accidents[:1]:
        stopped, seen, cleared = row[k.ACCIDENT_STOPPED : k.ACCIDENT_CLEARED + 1]
        assert 90 <= seen - stopped <= 150
        assert 600 <= cleared - seen <= 1200
        along, d = int(row[k.ACCIDENT_X]), int(row[k.ACCIDENT_DIR])
        pos = along if d == 0 else 527_999 - along
        here = (fields.pos == pos) & (fields.dir == d) & (fields.lane == row[k.ACCIDENT_LANE])
        here &= (time >= stopped) & (time < cleared)
        trips, reports = np.unique(fields.trip[here], return_counts=True)
        assert len(trips) == 2
        assert reports.min() >= 4
        assert np.all(fields.spd[here] == 0)


def test_a_queue_grows_behind_an_accident_and_nowhere_ahead_of_it() -> None:
    seconds = 2400
    road = Expressway(4, 0, seconds, demand_share=1.0)
    # Where and when most vehicles pass, without another accident.
    row = road.road.accidents[1]
    row[[k.ACCIDENT_PLANNED, k.ACCIDENT_DIR, k.ACCIDENT_LANE, k.ACCIDENT_X]] = (
        1300, 0, 2, 45.5 * 5280,
    )  # fmt: skip
    road.road.accidents[0, k.ACCIDENT_PLANNED] = 1e9
    packed, time = run(road, seconds)
    fields = unpack(packed)
    mile = int(row[k.ACCIDENT_X]) / 5280
    here = (fields.dir == 0) & (fields.lane >= 1) & (fields.lane <= 3)

    def speed(low: float, high: float, begin: int, end: int) -> float:
        rows = here & (fields.pos >= low * 5280) & (fields.pos < high * 5280)
        return float(fields.spd[rows & (time >= begin) & (time < end)].mean())

    standing = int(row[k.ACCIDENT_STOPPED])
    assert speed(mile - 1, mile, standing - 300, standing) > 40
    assert speed(mile - 1, mile, standing + 300, standing + 600) < 30
    assert speed(mile + 1, mile + 2, standing + 300, standing + 600) > 50


def test_entries_are_uniform_and_exits_normal_around_the_middle() -> None:
    road = Expressway(9, 0, 1200)
    road.advance(1200)
    begun = road.road.trip_entry >= 0
    entry = road.road.trip_entry[begun]
    along, direction = road.road.trip_exit[begun], road.road.trip_dir[begun]
    leave = np.where(direction == 0, along, 99 - along)
    assert np.all((leave > entry) == (direction == 0))
    counts = np.bincount(entry, minlength=100)
    assert counts.min() > 0.6 * counts.mean()
    assert abs(leave.mean() - 49.5) < 1.0
    assert abs(leave.std() - 19.5) < 1.0
    assert abs(np.abs(leave - entry).mean() - 29) < 1.5
    assert exit_shares()[-1] == 1.0


@given(key=st.integers(0, 2**64 - 1), counter=st.integers(0, 2**62))
@settings(deadline=None, database=None)
def test_random_numbers_are_splitmix64(key: int, counter: int) -> None:
    assert int(k.mix(np.uint64(key), np.int64(counter))) == reference.splitmix64(key, counter)


speeds = st.floats(0, 120)


@given(v=speeds, desired=st.floats(60, 120), headway=st.floats(0.3, 2), gap=st.floats(1, 1000),
       closing=st.floats(-50, 50))  # fmt: skip
@settings(deadline=None, database=None)
def test_car_following_is_the_intelligent_driver_model(
    v: float, desired: float, headway: float, gap: float, closing: float
) -> None:
    expected = reference.idm(
        v, desired, headway, gap, closing,
        a=k.ACCELERATION, b=k.COMFORTABLE_BRAKING, s0=k.STANDSTILL_GAP_FT,
    )  # fmt: skip
    assert k.idm(v, desired, headway, gap, closing) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(
    lane=st.lists(st.floats(0, 1e5), unique=True, max_size=30),
    coming=st.lists(st.floats(0, 1e5), unique=True, max_size=10),
)
@settings(deadline=None, database=None)
def test_those_who_change_lane_keep_it_in_order(lane: list[float], coming: list[float]) -> None:
    xs = sorted(lane, reverse=True) + sorted(coming, reverse=True)
    cars = np.zeros(len(xs) + 1, k.CAR)
    cars["x"][: len(xs)] = xs
    order = np.zeros(len(xs) + 1, np.int32)
    order[: len(lane)] = np.arange(len(lane))
    slots = np.arange(len(lane), len(xs), dtype=np.int32)
    k.insert(cars, order, len(lane), slots, len(coming))
    assert cars["x"][order[: len(xs)]].tolist() == sorted(xs, reverse=True)


def test_a_simulation_without_seconds_or_with_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="at least one second"):
        Expressway(1, 0, 0)
    with pytest.raises(InputError, match="must not be negative"):
        Expressway(-1, 0, 10)


def test_keys_differ_between_expressways() -> None:
    assert len({int(expressway_key(s, x)) for s in range(20) for x in range(20)}) == 400


@pytest.mark.slow
def test_no_kernel_reaches_outside_its_arrays(tmp_path: Path) -> None:
    program = (
        "from linearroad.traffic.simulation import Expressway\n"
        "road = Expressway(3, 0, 600, demand_share=5.0)\n"
        "print(len(road.advance(600).packed))\n"
    )
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 50_000
