"""What all tests share: how they are distributed over processes (`make test`).

Files with tests that start Spark run in one process, so that there is one session. The groups of
pytest-xdist (`--dist loadgroup`) would do, but version 3.8 marks a group in an attribute that
pytest 9.1 and newer no longer read; hence a scheduler of our own, which is told by the file names.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Busy machines must not make a test fail.
settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")

TESTS = Path(__file__).parent
SPARK = "spark"
#: Files with tests that start Spark.
SPARK_FILES = {
    str(path.relative_to(TESTS.parent))
    for path in TESTS.rglob("test_*.py")
    if "pytest.mark.spark" in path.read_text()
}


@pytest.fixture(scope="module", autouse=True)
def collect_what_is_new() -> None:
    """Exclude what earlier files left, mostly compiled code, from the collections of garbage in
    this one: compiling causes many of them, and each would look at millions of objects."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that starts Spark without saying so: it would start a second session."""
    for item in items:
        if "spark_session" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(
            SPARK
        ):
            raise pytest.UsageError(f"{item.nodeid} uses Spark: mark it with pytest.mark.spark")


def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Give one process all files that start Spark; the others share the rest, one test with all
    its parameters at a time."""
    from xdist.scheduler import LoadScopeScheduling

    class SparkTogether(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return SPARK if file in SPARK_FILES else nodeid.split("[", 1)[0]

    return SparkTogether(config, log) if config.getvalue("dist") == "loadgroup" else None
