"""A few hundred inputs of the fuzzer for each format; `make fuzz` tries more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fuzz.parsers import FORMS, mutated, parse, seeds


@pytest.mark.parametrize("form", FORMS)
def test_changed_files_are_read_or_refused(form: str, tmp_path: Path) -> None:
    rng = random.Random(form)
    pool = seeds(form, tmp_path)
    outcomes = [parse(form, mutated(rng.choice(pool), pool, rng), tmp_path) for _ in range(100)]
    assert "refused" in outcomes  # inputs are changed enough for that
    seeded = [parse(form, seed, tmp_path) for seed in pool]
    # The seeds of datagrams include lost ones, which are refused by some policies.
    assert "read" in seeded if form == "datagrams" else set(seeded) == {"read"}


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300))
@example(b"a\n1\r2\n")
@example(b'a\n"\n')
@example(b"PK\x03\x04")
@example(b"\x93NUMPY\x01\x00\x10\x00{'descr': (1,\n  ")
def test_any_bytes_are_read_or_refused(form: str, tmp_path: Path, data: bytes) -> None:
    assert parse(form, data, tmp_path) in ("read", "refused")
