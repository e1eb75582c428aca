"""A saved state is checked before kernels use it: damaged and crafted ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from linearroad.generation.manifest import file_entry
from linearroad.run.job import RunOptions, run
from linearroad.run.state import read_state
from linearroad.tables.history import History

from xstream.errors import InputError

Arrays = dict[str, np.ndarray]
Change = Callable[[Arrays], object]
MINUTE = 4


@pytest.fixture(scope="module")
def kept(
    directory: Path, history: History, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files of a state, by their names."""
    place = tmp_path_factory.mktemp("kept")
    options = RunOptions(answers="digest", minutes=MINUTE, keep_state=place / "state")
    run(directory, place / "out", history, options)
    return {path.name: path.read_bytes() for path in (place / "state").iterdir()}


@pytest.fixture
def state(kept: dict[str, bytes], tmp_path: Path) -> Path:
    """A copy of the state, for a test to damage."""
    place = tmp_path / "state"
    place.mkdir()
    for name, data in kept.items():
        (place / name).write_bytes(data)
    return place


def list_again(state: Path) -> None:
    """List the current sizes and checksums of the files, as an attacker would."""
    meta = json.loads((state / "state.json").read_text())
    meta["files"] = [file_entry(state, path) for path in sorted(state.glob("*.npz"))]
    (state / "state.json").write_text(json.dumps(meta))


def craft(state: Path, name: str, change: Change) -> None:
    """Change the arrays of a file, and list it as if it were right."""
    path = state / f"{name}.npz"
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    change(arrays)
    np.savez(path, **arrays)
    list_again(state)


def put(name: str, at: object, value: object, field: str | None = None) -> Change:
    def change(arrays: Arrays) -> None:
        target = arrays[name] if field is None else arrays[name][field]
        target[at] = value

    return change


def become(name: str, made: Callable[[np.ndarray], np.ndarray]) -> Change:
    def change(arrays: Arrays) -> None:
        arrays[name] = made(arrays[name])

    return change


def shorter(length: int, *names: str) -> Change:
    return lambda arrays: arrays.update({name: arrays[name][:length] for name in names})


def live(arrays: Arrays) -> int:
    """The place of a report that is in a batch."""
    batch = int(np.flatnonzero(arrays["count"])[0])
    return int(arrays["base"][batch])


def in_a_report(field: str, value: int) -> Change:
    return lambda arrays: put(field, live(arrays), value)(arrays)


def in_an_entry(name: str, where: str, field: str, value: int) -> Change:
    """Change an entry of a hash table that is taken."""

    def change(arrays: Arrays) -> None:
        taken = int(np.flatnonzero(arrays[name][where] != -1)[0])
        arrays[name][field][taken] = value

    return change


def full_of_standing(arrays: Arrays) -> None:
    """Every entry of the table of standing vehicles is taken, and counted."""
    arrays["standing"]["key"] = 3
    arrays["number"][0] = len(arrays["standing"])


def test_the_state_as_it_was_kept_is_read(directory: Path, state: Path) -> None:
    assert read_state(state, directory).minute == MINUTE


def test_a_kept_state_replaces_what_a_killed_run_left(
    directory: Path, history: History, state: Path, tmp_path: Path
) -> None:
    (state / f".tolls-0.npz.{'0' * 32}.tmp").write_bytes(b"half")
    (state / "tolls-0.npz").write_bytes(b"half")
    (state / "notes.tmp").write_text("somebody else's")
    options = RunOptions(answers="digest", minutes=MINUTE, keep_state=state)
    run(directory, tmp_path / "out", history, options)
    assert read_state(state, directory).minute == MINUTE
    assert [path.name for path in state.glob("*.tmp")] + [
        path.name for path in state.glob(".*.tmp")
    ] == ["notes.tmp"]


CRAFTED: dict[str, tuple[str, Change, str]] = {
    "count beyond the array": ("vehicles-0", put("count", 3, 2**40), "a batch's length"),
    "negative count": ("vehicles-0", put("count", 3, -1), "a batch's length"),
    "base beyond the array": ("vehicles-0", put("base", 3, 2**60), "a batch's beginning"),
    "negative base": ("vehicles-0", put("base", 3, -5), "a batch's beginning"),
    "short reports": ("vehicles-0", shorter(1, "vid", "where", "bits"), "a batch"),
    "no reports": ("vehicles-0", become("bits", lambda a: a[:0]), "'bits' is empty"),
    "fewer bits": ("vehicles-0", become("bits", lambda a: a[:-1]), "'bits' has"),
    "short ring": ("vehicles-0", become("second", lambda a: a[:31]), "'second' has 31 entries"),
    "far second": ("vehicles-0", put("second", 3, 2**50), "a batch's second"),
    "moved second": ("vehicles-0", put("second", 3, 4), "at the place of another second"),
    "huge segment": ("vehicles-0", in_a_report("where", 100 << 24), "a segment"),
    "negative segment": ("vehicles-0", in_a_report("where", -7), "a segment"),
    "far position": ("vehicles-0", in_a_report("where", (1 << 20) - 1), "a position"),
    "huge last segment": ("vehicles-0", in_a_report("bits", 100 << 17), "a segment"),
    "unknown fate": ("vehicles-0", in_a_report("bits", 3 << 28), "a report's bits"),
    "negative VID": ("vehicles-0", in_a_report("vid", -3), "a VID"),
    "unknown VID": ("vehicles-0", in_a_report("vid", 2**31 - 1), "a VID"),
    "wrong counts": ("vehicles-0", put("number", 3, 7), "do not fit are counted wrongly"),
    "slots": ("vehicles-0", put("number", 0, 10**6), "expressways are counted wrongly"),
    "full slots": ("vehicles-0", become("xway", lambda a: a[a["key"] != -1]), "no empty entry"),
    "wrong slot": ("vehicles-0", put("xway", slice(None), 5, "slot"), "an expressway's number"),
    "another type": ("vehicles-0", become("base", lambda a: a.astype(np.int32)), "is int32, not"),
    "big-endian": ("vehicles-0", become("base", lambda a: a.astype(">i8")), "'base' is >i8"),
    "two dimensions": ("vehicles-0", become("base", lambda a: a.reshape(2, 16)), "2 dimensions"),
    "missing array": ("vehicles-0", lambda arrays: arrays.pop("base"), "other arrays than"),
    "another array": ("vehicles-0", lambda a: a.update(more=np.zeros(1)), "other arrays than"),
    "pairs": ("accidents-0", put("number", 1, 10**9), "the number of accidents"),
    "no pairs": ("accidents-0", become("pairs", lambda a: a[:0]), "'pairs' is empty"),
    "entries": ("accidents-0", put("number", 0, 10**9), "standing vehicles are counted"),
    "full table": ("accidents-0", full_of_standing, "no empty entry"),
    "last second": ("accidents-0", put("number", 2, -(2**62)), "the last second"),
    "totals": ("segment-statistics-0", become("total", lambda a: a[:7]), "entries, not 7"),
    "history": ("segment-statistics-0", become("history", lambda a: a[:7]), "'history' has 7"),
    "infinite": ("segment-statistics-0", put("history", 0, np.nan), "not all numbers"),
    "long": ("tolls-0", become("lav", lambda a: np.tile(a, 9)), "entries, not 1800"),
    "odd": ("tolls-0", shorter(150, "lav", "cars", "alert", "above", "last", "before"),
            "no whole directions"),
    "no quotes": ("tolls-0", become("quoted", lambda a: a[:0]), "'quoted' is empty"),
    "a far minute": ("tolls-0", put("minute", 0, 2**60), "the minute"),
    "more pages": ("accounts-0", put("used", 0, 2**40), "pages are counted wrongly"),
    "full entries": ("accounts-0", become("entry", lambda a: a[a["key"] != -1]), "no empty entry"),
    "wrong page": ("accounts-0", in_an_entry("entry", "key", "page", 2**30), "a page"),
    "negative page": ("accounts-0", in_an_entry("entry", "key", "page", -9), "a page"),
    "wrong number": ("accounts-0", in_an_entry("entry", "key", "key", 2**30), "a page's"),
    "few balances": ("accounts-0", become("balance", lambda a: a[:1]), "fewer balances"),
    "wide balances": ("accounts-0", put("used", 1, 3), "balances that do not fit are counted"),
    "unsettled": ("accounts-0", put("progress", 1, 2**40), "are not settled"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", CRAFTED)
def test_a_crafted_state_with_a_right_checksum_is_refused(
    directory: Path, history: History, state: Path, tmp_path: Path, wrong: str
) -> None:
    name, change, sentence = CRAFTED[wrong]
    craft(state, name, change)
    out = tmp_path / "out"
    with pytest.raises(InputError, match=sentence) as error:
        run(directory, out, history, RunOptions(answers="digest", from_state=state))
    assert f"{name}.npz is not a valid saved state" in str(error.value)
    assert not out.exists()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (flip, "is damaged: its checksum differs from the one in"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "bytes, and .* lists"),
        (lambda path: path.unlink(), "is missing, and .* lists it"),
    ],
)
def test_a_damaged_state_is_refused(
    directory: Path, state: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    damage(state / "tolls-1.npz")
    with pytest.raises(InputError, match=sentence):
        read_state(state, directory)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (lambda file: np.savez_compressed(file, a=np.zeros(10**6)), "is compressed"),
        (lambda file: np.savez(file, a=np.array([{}], object)), "cannot be read"),
        (lambda file: file.write(b"no archive"), "cannot be read"),
    ],
)
def test_a_file_that_holds_no_plain_arrays_is_refused(
    directory: Path, state: Path, written: Callable[..., object], sentence: str
) -> None:
    with (state / "tolls-0.npz").open("wb") as file:
        written(file)
    list_again(state)
    with pytest.raises(InputError, match=sentence):
        read_state(state, directory)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"minute": -1}, "minute must be from 0 to .* not -1"),
        ({"minute": 10**12}, "minute must be from 0 to"),
        ({"minute": "4"}, "minute must be from 0 to .* not '4'"),
        ({"files": None}, "is not listed in"),
        ({"files": [3, {}]}, "is not listed in"),
        ({"version": 2}, "is a saved state of version 2, not 5"),
    ],
)
def test_a_malformed_list_is_refused(
    directory: Path, state: Path, changed: dict[str, object], sentence: str
) -> None:
    meta = json.loads((state / "state.json").read_text())
    (state / "state.json").write_text(json.dumps(meta | changed))
    with pytest.raises(InputError, match=sentence):
        read_state(state, directory)
