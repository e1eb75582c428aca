from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

#: Queries over a few thousand rows: compiling them would take longer than running them.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module", autouse=True)
def interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark interprets queries instead of compiling them, if a test uses the shared session."""
    if not any("spark_session" in item.fixturenames for item in request.session.items
               if item.path == request.path):  # fmt: skip
        yield
        return
    spark: Any = request.getfixturevalue("spark_session")
    before = {name: spark.conf.get(name, None) for name in INTERPRETED}
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)
