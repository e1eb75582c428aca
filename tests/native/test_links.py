"""Sources and sinks on sockets, with all of their threads, under the compiler's sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.test_parts import compiled
from tests.native.test_stress import ADDRESS, THREAD, run, sanitizer_works

pytestmark = [pytest.mark.sanitizer, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(THREAD, id="thread", marks=pytest.mark.slow),
        pytest.param(ADDRESS, id="address"),
    ],
)
def test_the_sanitizer_finds_nothing_in_sources_and_sinks(tmp_path: Path, flags: list[str]) -> None:
    if not sanitizer_works(tmp_path, flags):
        pytest.skip("this compiler or machine does not support the sanitizer")
    result = run(compiled(tmp_path, flags, "links"), "1000")
    assert result.returncode == 0, result.stdout + result.stderr


def test_all_samples_arrive_in_order(tmp_path: Path) -> None:
    result = run(compiled(tmp_path, [], "links"), "5000")
    assert result.returncode == 0, result.stdout + result.stderr
