"""Decoding on several threads keeps the order of items, and their errors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import xstream as xs
from tests.io.files import samples_of
from xstream.io.parallel import in_order

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_before_an_error_come_first(threads: int) -> None:
    def items() -> Iterator[int]:
        yield from range(10)
        raise xs.InputError("the items end here")

    results = in_order(lambda n: -n, items(), threads)
    assert [next(results) for _ in range(10)] == [-n for n in range(10)]
    with pytest.raises(xs.InputError, match="the items end here"):
        next(results)


def test_no_more_than_so_many_are_computed_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for n in range(100):
            taken.append(n)
            yield n

    before = threading.active_count()
    results = in_order(lambda n: n, items(), threads=2)
    assert next(results) == 0
    assert len(taken) == 3
    assert threading.active_count() <= before + 2
    results.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


@pytest.mark.parametrize("group_rows", [1000, 7777, 50_000])
@pytest.mark.parametrize("whole_bytes", [1 << 30, 0])
def test_row_groups_arrive_in_order(
    group_rows: int, whole_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["xstream.io.parquet"], "_WHOLE_GROUP_BYTES", whole_bytes)
    noise, numbers = RNG.normal(size=50_000), np.arange(50_000)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": noise, "n": numbers}), path, row_group_size=group_rows)
    found = samples_of(xs.io.parquet(path, window=900, columns=["n", "x"]))
    np.testing.assert_array_equal(found[0], numbers)
    np.testing.assert_array_equal(found[1], noise)


def test_damage_in_a_late_row_group_leaves_the_groups_before_it(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    noise = RNG.normal(size=50_000)
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"x": noise}), path, row_group_size=5_000, **options)
    data = bytearray(path.read_bytes())
    data[data.index(noise[37_000:37_004].tobytes())] ^= 1
    path.write_bytes(data)
    seen: list[float] = []
    q = xs.Query()
    q.source(xs.io.parquet(path, layout="rows")).sink(seen.append)
    with pytest.raises(xs.InputError, match=r"the page at byte .* CRC checksum"):
        q.run()
    assert seen == noise[:35_000].tolist()


@pytest.mark.parametrize("bad", [None, 1, 4321, 9999])
def test_chunks_of_lines_arrive_in_order(
    bad: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("CHUNK_BYTES", 1 << 10), ("_LARGE_BYTES", 0)):
        monkeypatch.setattr(sys.modules["xstream.io.csv"], name, size)
    path = tmp_path / "x.csv"
    lines = [str(n) if n != bad else "cat" for n in range(10_000)]
    path.write_text("\n".join(["n", *lines]))
    seen: list[float] = []
    q = xs.Query()
    q.source(xs.io.csv(path, layout="rows")).sink(seen.append)
    if bad is None:
        q.run()
    else:
        with pytest.raises(xs.InputError, match=rf"line {bad + 2}: column 'n': 'cat' is not"):
            q.run()
    assert seen == list(range(10_000 if bad is None else bad))
