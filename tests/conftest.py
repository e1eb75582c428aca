"""What all tests share: how they are distributed over processes (`make test`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
SPARK = "spark"
#: Files with tests that start Spark.
SPARK_FILES = {
    str(path.relative_to(TESTS.parent))
    for path in TESTS.rglob("test_*.py")
    if "pytest.mark.spark" in path.read_text()
}


def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Give one process all files that start Spark, so that there is one session; the others share
    the rest, one test with all its parameters at a time."""
    from xdist.scheduler import LoadScopeScheduling

    class SparkTogether(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return SPARK if file in SPARK_FILES else nodeid.split("[", 1)[0]

    return SparkTogether(config, log) if config.getvalue("dist") == "loadgroup" else None
