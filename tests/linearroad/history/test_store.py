"""The history store is checked when it is opened: a damaged one is refused with one sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import (
    MANIFEST_VERSION,
    check_parameters,
    file_entry,
    read_manifest,
)
from linearroad.generation.parameters import TrafficParameters
from linearroad.history._kernels_store import travel
from linearroad.history.files import MOST
from linearroad.history.store import SEGMENT_SUMS_SHAPE, TOLL_DAYS, HistoryStore, mapped_stores
from linearroad.tables import history
from linearroad.tables.history import load_history
from linearroad.validation.history import find_history
from linearroad.validation.rows import input_files

from tests.apps.command import call
from xstream.errors import InputError

EXPRESSWAYS = 2
MEBIBYTE = 1 << 20


def list_store(root: Path, **more: object) -> None:
    """Write a manifest of the store's files as they are now."""
    layout = Layout(root)
    entries = [
        {"xway": x, "files": [file_entry(root, p) for p in sorted(layout.store(x).glob("*.npy"))]}
        for x in range(EXPRESSWAYS)
    ]
    manifest = {
        "version": MANIFEST_VERSION, "complete": True, "store": entries,
        "parameters": {"expressways": EXPRESSWAYS, "format": "csv", "minutes": 1}, **more,
    }  # fmt: skip
    layout.manifest.write_text(json.dumps(manifest))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A generated directory with stores in which vehicle 3 paid 70 on day 2."""
    place = tmp_path / "road"
    for xway in range(EXPRESSWAYS):
        store = Layout(place).store(xway)
        store.mkdir(parents=True)
        sums = np.zeros(SEGMENT_SUMS_SHAPE, np.int32)
        sums[..., 0], sums[..., 1], sums[..., 2] = 300, 100, 10
        np.save(store / "segment_sums.npy", sums)
        np.save(store / "toll_vids.npy", np.arange(5, dtype=np.int32))
        tolls = np.zeros((5, TOLL_DAYS), np.int32)
        tolls[3, 1] = 70
        np.save(store / "tolls.npy", tolls)
    list_store(place)
    return place


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1234] ^= 1 << 5
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4096])


def saved_as(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    return lambda path: np.save(path, change(np.load(path)))


def removed(path: Path) -> None:
    path.unlink()


#: Faults of an array, and the error for each, even if the manifest lists the file.
WRONG = {
    "int64": (saved_as(lambda a: a.astype(np.int64)), "is not an array of int32"),
    "float32": (saved_as(lambda a: a.astype(np.float32)), "is not an array of int32"),
    "big-endian": (saved_as(lambda a: a.astype(">i4")), "is not an array of int32"),
    "fortran": (saved_as(np.asfortranarray), "is not in C order"),
    "short": (saved_as(lambda a: a[:-1]), "has shape"),
    "flat": (saved_as(lambda a: a.reshape(-1)), "has shape"),
    "negative": (saved_as(lambda a: a - 1000), "has negative sums"),
    "text": (lambda path: path.write_text("no array"), "cannot be read"),
}


@pytest.mark.parametrize("segments", [1, 3, 7, 25])
def test_half_a_second_of_travel_time_goes_up_whenever_the_journey_begins(segments: int) -> None:
    """At 57.6 mph a segment takes 62.5 s; sums of floats are slightly more or less."""
    sums = np.zeros((7, 2, 1440, 100, 3), np.int32)
    sums[..., 0], sums[..., 2] = 576, 10
    exact = 60 * 60 / Fraction(576, 10) * segments
    expected = math.floor(exact + Fraction(1, 2))
    found = {travel(sums, 0, segments, 3, tod)[0] for tod in range(1, 1441)}
    assert found == {expected}


def test_a_whole_store_is_read(root: Path) -> None:
    store = HistoryStore(root)
    assert store.expenditure(vid=3, day=2, xway=1) == 70
    assert store.travel_time(0, 10, 12, 5, 100) == (240, 0)
    assert load_history(root, None, None).knows_segments


@pytest.mark.parametrize("free_bytes", [0, 60 * MEBIBYTE, 1 << 60])
def test_half_of_the_free_memory_is_left_when_pages_are_read(
    root: Path, free_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "available_bytes", lambda: free_bytes)
    stores = mapped_stores(root, read_manifest(root))
    one = stores[0].segment_sums.nbytes
    read = history._read_pages(stores)
    assert read <= free_bytes // 2
    small = sum(store.toll_vids.nbytes for store in stores.values())
    everything = sum(array.nbytes for store in stores.values() for array in store)
    assert read == {0: 0, 60 * MEBIBYTE: small + one, 1 << 60: everything}[free_bytes]


@pytest.mark.parametrize("name", ["segment_sums.npy", "toll_vids.npy", "tolls.npy"])
@pytest.mark.parametrize(
    ("damage", "sentence"),
    [(flipped, "is damaged"), (cut, "bytes, and .* lists"), (removed, "is missing")],
)
def test_a_damaged_file_is_refused(
    root: Path, name: str, damage: Callable[[Path], None], sentence: str
) -> None:
    path = Layout(root).store(1) / name
    if name == "toll_vids.npy":  # long enough to be damaged
        np.save(path, np.arange(3000, dtype=np.int32))
        np.save(path.with_name("tolls.npy"), np.zeros((3000, TOLL_DAYS), np.int32))
    if name == "tolls.npy":
        np.save(path.with_name("toll_vids.npy"), np.arange(3000, dtype=np.int32))
        np.save(path, np.zeros((3000, TOLL_DAYS), np.int32))
    list_store(root)
    HistoryStore(root)
    damage(path)
    with pytest.raises(InputError, match=sentence) as error:
        load_history(root, None, None)
    assert str(path) in str(error.value)


def test_a_history_that_is_checked_later_is_refused_when_it_is_needed(root: Path) -> None:
    load_history(root, None, None, wait=False).ready()
    path = Layout(root).store(1) / "segment_sums.npy"
    flipped(path)
    known = load_history(root, None, None, wait=False)
    with pytest.raises(InputError, match=f"{path} is damaged"):
        known.ready()


@pytest.mark.parametrize("wrong", WRONG)
def test_an_array_of_another_kind_is_refused_even_if_the_manifest_lists_it(
    root: Path, wrong: str
) -> None:
    damage, sentence = WRONG[wrong]
    damage(Layout(root).store(0) / "segment_sums.npy")
    with pytest.raises(InputError, match=r"lists|is damaged"):
        HistoryStore(root)
    list_store(root)
    with pytest.raises(InputError, match=sentence):
        HistoryStore(root)


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("toll_vids.npy", np.array([0, 1, 2, 4, 3], np.int32), "not in ascending order"),
        ("toll_vids.npy", np.arange(6, dtype=np.int32), "has shape"),
        ("tolls.npy", np.zeros((5, TOLL_DAYS - 1), np.int32), "has shape"),
        ("tolls.npy", np.array([{"a": 1}], object), "cannot be read"),
    ],
)
def test_tolls_must_fit_their_vehicles(
    root: Path, name: str, array: np.ndarray, sentence: str
) -> None:
    np.save(Layout(root).store(0) / name, array, allow_pickle=True)
    list_store(root)
    with pytest.raises(InputError, match=sentence):
        HistoryStore(root)


def test_a_missing_store_is_one_sentence_and_exit_code_2(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Layout(root).store(1)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    rows = root.parent / "rows.csv"
    rows.write_text("0,0,1,50,0,1,0,2,11000" + ",-1" * 6 + "\n")
    options = ("--input", rows, "--history", root, "--out", root.parent / "out")
    assert call(monkeypatch, "linearroad", "run", *options) == 2
    said = capsys.readouterr().err
    assert "is missing" in said
    assert len(said.strip().splitlines()) == 1
    list_store(root)
    with pytest.raises(InputError, match=r"is not listed in .*manifest\.json"):
        load_history(root, None, None)
    list_store(root, store=[])
    with pytest.raises(InputError, match="has no history"):
        load_history(root, None, None)
    list_store(root, store=[{"xway": 0}])
    with pytest.raises(InputError, match=r"is not listed in .*manifest\.json"):
        load_history(root, None, None)


@pytest.mark.parametrize("command", ["run", "describe", "rate"])
def test_an_incomplete_directory_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    list_store(root, complete=False)
    out = root.parent / "out"
    options = {
        "run": ("--input", root, "--out", out),
        "describe": (root,),
        "rate": ("--base", root, "--out", out),
    }[command]
    assert call(monkeypatch, "linearroad", command, *options) == 2
    said = capsys.readouterr().err
    assert "is not complete: run the same `linearroad generate` again to finish it" in said
    assert len(said.strip().splitlines()) == 1


def test_an_incomplete_directory_is_not_validated(root: Path) -> None:
    list_store(root, complete=False)
    with pytest.raises(InputError, match="is not complete"):
        input_files(root)
    with pytest.raises(InputError, match="is not complete"):
        find_history(None, root, None, None)  # type: ignore[arg-type]


def test_an_incomplete_directory_can_be_continued(tmp_path: Path) -> None:
    parameters = TrafficParameters(expressways=1, minutes=1, seed=1)
    manifest = check_parameters(tmp_path, parameters)
    Layout(tmp_path).manifest.write_text(json.dumps(manifest))
    assert check_parameters(tmp_path, parameters) == manifest
    for broken in ({}, {"expressways": "two"}, {"expressways": 0}):
        manifest |= {"complete": True, "parameters": broken}
        Layout(tmp_path).manifest.write_text(json.dumps(manifest))
        with pytest.raises(InputError, match="does not say how many expressways"):
            read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            "1,1,0,0,0,3000000000,10,0\n",
            "Lav must be from -2,147,483,647 to 2,147,483,647, not 3,000,",
        ),
        ("1,1,0,0,0,10,-9000000000,0\n", "Cnt must be"),
        (f"1,1,0,0,0,{MOST},1,0\n8,1,0,0,0,1,1,0\n", "sums of Lav or Cnt .* exceed 2,147,483,647"),
        ("0,1,0,0,0,10,10,0\n", "Day must be from 1 to 70, not 0"),
    ],
)
def test_segment_history_of_more_than_32_bits_is_refused(
    tmp_path: Path, row: str, sentence: str
) -> None:
    path = tmp_path / "segments.csv"
    path.write_text(row)
    with pytest.raises(InputError, match=sentence):
        load_history(None, None, path)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((1, 1, 0, 2**31), "Tolls must be .* not 2,147,483,648"),
        ((2**31, 1, 0, 5), "VID must be"),
        ((1, 70, 0, 5), "Day must be from 1 to 69, not 70"),
        ((1, 1, 0, None), "column 'tolls' contains values that are not integers"),
        ((1, 1, 0, 1.5), "column 'tolls' contains values that are not integers"),
    ],
)
def test_toll_history_of_more_than_32_bits_is_refused(
    tmp_path: Path, values: tuple[object, ...], sentence: str
) -> None:
    path = tmp_path / "tolls.parquet"
    names = ("vid", "day", "xway", "tolls")
    table = pa.table({name: [value] for name, value in zip(names, values, strict=True)})
    pq.write_table(table, path, write_page_checksum=True)
    with pytest.raises(InputError, match=sentence):
        load_history(None, path, None)
