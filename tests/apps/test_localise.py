"""Localisation: bearings of plane waves, places where they cross, errors against the truth."""

from __future__ import annotations

import json

import numpy as np
import pytest
from detectaudio.recording import SOUND_M_S, SQUARE_M, arrivals, delayed
from detectaudio.recording import call as animal_call
from localise import Call, Located, Scene, evaluate, generate, locate
from localise._kernels import bearing, cross

import xstream as xs
from tests.apps.command import call
from xstream.testing import list_source

RATE_HZ = 48_000.0
SCENE = generate(arrays=4, calls=3, seed=7)


@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_the_bearing_is_where_a_plane_wave_comes_from(heading: float) -> None:
    rng = np.random.default_rng(1)
    x_m, y_m = (np.ascontiguousarray(column) for column in SQUARE_M.T)
    for truth in np.linspace(-3.0, 3.0, 13):
        sound = animal_call(rng, RATE_HZ)
        late = arrivals(float(truth) - heading, SQUARE_M, RATE_HZ)
        channels = [delayed(sound, 64.0 + each).astype(np.float32) for each in late]
        row = tuple(xs.SigSeg(channel + 0.01) for channel in channels)
        query = xs.Query()
        out = query.source(list_source([row])).iterate(
            bearing, x_m, y_m, heading, SOUND_M_S / RATE_HZ
        ).collect()  # fmt: skip
        ((_, found, alike),) = query.run()[out]
        assert abs(np.angle(np.exp(1j * (found - truth)))) < 0.01
        assert alike > 0.8


def crossed(rows: list[tuple[int, int, float, float]], places: np.ndarray, least: int = 2) -> list:  # type: ignore[type-arg]
    """Positions of bearings (array, start, angle, likeness)."""
    x, y = (np.ascontiguousarray(column) for column in places.T)
    query = xs.Query()
    names = {"stream": int, "start": int, "bearing_rad": float, "alike": float}
    out = query.source(xs.io.iterable(rows, out=names)).iterate(
        cross, x, y, 1000, 50_000, least
    ).collect()  # fmt: skip
    found: list = query.run()[out]  # type: ignore[type-arg]
    return found


PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def bearings_to(x: float, y: float, start: int) -> list[tuple[int, int, float, float]]:
    return [
        (i, start + 10 * i, float(np.arctan2(y - py, x - px)), 1.0)
        for i, (px, py) in enumerate(PLACES)
    ]


def test_bearings_cross_where_the_call_was() -> None:
    rows = [*bearings_to(3.0, 4.0, 0), *bearings_to(7.0, 1.0, 20_000)]
    # One array tells all of its bearings before the next, as batches make it.
    found = crossed(sorted(rows), PLACES)
    assert [each[0] for each in found] == [0, 20_000]
    assert np.allclose([each[1:3] for each in found], [(3.0, 4.0), (7.0, 1.0)])
    assert all(each[4] == 4 for each in found)


def test_a_bearing_that_fits_no_other_is_left_out() -> None:
    rows = bearings_to(3.0, 4.0, 0)
    rows[2] = (2, 20, rows[2][2] + 1.0, 1.0)
    ((_, x, y, off, arrays),) = crossed(rows, PLACES)
    assert (x, y) == pytest.approx((3.0, 4.0))
    assert arrays == 3
    assert off < 1e-6


def test_what_some_arrays_did_not_hear_is_told_later() -> None:
    rows = [*bearings_to(3.0, 4.0, 0)[:3], *bearings_to(7.0, 1.0, 60_000)]
    assert [each[4] for each in crossed(rows, PLACES)] == [3, 4]
    assert len(crossed(bearings_to(3.0, 4.0, 0)[:2], PLACES)) == 1
    assert crossed(bearings_to(3.0, 4.0, 0)[:2], PLACES, least=3) == []
    parallel = [(0, 0, 0.5, 1.0), (1, 0, 0.5, 1.0)]
    assert crossed(parallel, PLACES) == []


@pytest.mark.parametrize("memory", ["copy-always", "refcount-lazy"])
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_calls_are_located_everywhere(scheduler: str, memory: str) -> None:
    outcome = evaluate(SCENE, locate(SCENE, None, scheduler, memory))
    assert len(outcome.errors_m) == 3
    assert not outcome.missed
    assert not outcome.false_alarms
    assert outcome.largest_m < 0.2


@pytest.mark.parametrize("seed", [3, 4])
def test_errors_stay_small(seed: int) -> None:
    scene = generate(arrays=5, calls=4, seed=seed)
    outcome = evaluate(scene, locate(scene))
    assert not outcome.missed
    assert outcome.median_m < 0.1
    assert outcome.largest_m < 1.0


def test_outcomes_tell_errors_misses_and_false_alarms() -> None:
    scene = Scene(SCENE.recordings, SCENE.places_m, SCENE.headings_rad,
                  (Call(1.0, 0.0, 0.0), Call(5.0, 1.0, 1.0)))  # fmt: skip
    found = [Located(1.1, 3.0, 4.0, 0.0, 4), Located(9.0, 0.0, 0.0, 0.0, 4)]
    outcome = evaluate(scene, found)
    assert outcome.errors_m == (5.0,)
    assert (outcome.missed, outcome.false_alarms) == (1, 1)


def test_the_command_reports_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "localise", "demo", "--calls", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["largest_error_m"] < 1.0
    assert call(monkeypatch, "localise", "demo", "--calls", 2) == 0
    assert "2 of 2 calls located" in capsys.readouterr().out
    assert call(monkeypatch, "localise", "demo", "--arrays", 1) == 2
    assert "arrays must be from 2 to 16, not 1" in capsys.readouterr().err
    assert call(monkeypatch, "localise", "demo", "--calls", 100_000) == 2
    assert "--calls must be from 0 to 100, not 100000" in capsys.readouterr().err


def test_where_no_call_is_located_there_is_no_error_of_positions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "localise", "demo", "--calls", 0, "--json") == 0
    assert json.loads(capsys.readouterr().out)["largest_error_m"] is None
    assert call(monkeypatch, "localise", "demo", "--calls", 0) == 0
    assert "nan" not in capsys.readouterr().out
