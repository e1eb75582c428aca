from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from linearroad import spark as sparks
from linearroad.generate import generate
from linearroad.parameters import TrafficParameters


@pytest.fixture(scope="session")
def spark_session() -> Iterator[object]:
    """One session for the whole run; `generate` finds it and leaves it alone."""
    try:
        sparks.require_spark()
    except ValueError as error:
        pytest.skip(str(error))
    with sparks.session("local[2]") as spark:
        yield spark


@pytest.fixture(scope="session")
def small() -> TrafficParameters:
    return TrafficParameters(expressways=3, minutes=8, seed=5)


@pytest.fixture(scope="session")
def generated(
    spark_session: object, small: TrafficParameters, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Three expressways of eight minutes, without history."""
    out = tmp_path_factory.mktemp("traffic") / "out"
    generate(small, out, partitions=1)
    return out
