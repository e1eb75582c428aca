from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from linearroad import spark as sparks
from linearroad.generation.job import generate
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.generation.parameters import TrafficParameters
from linearroad.tables.history import History

from tests.linearroad.engine import history_of
from tests.reference import linearroad as reference
from tests.reference.linearroad_strategies import Scenario, scenario


@pytest.fixture(scope="session")
def spark_session() -> Iterator[object]:
    """One session for the whole test run; `generate` uses it and does not stop it."""
    try:
        sparks.require_spark()
    except ValueError as error:
        pytest.skip(str(error))
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Java would compile much that runs a few times only with its slower compiler as well.
            patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
            spark = stack.enter_context(sparks.session("local[2]"))
        yield spark


@pytest.fixture(autouse=True)
def cut_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use several threads from the first tuple on, and as many as requested."""
    monkeypatch.setattr("xstream.run.MEASURE_NS", 0)
    monkeypatch.setattr("xstream.sched.threads.usable_cores", lambda: 64)


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


#: Expressways of the directory that is written without Spark.
BASE = 2


@pytest.fixture(scope="session")
def case() -> Scenario:
    """A scenario on two expressways, its vehicles numbered from 0 as generated ones are."""
    found = scenario(11)
    rows, _ = reference.parse(found.text)
    roads = {xway: i for i, xway in enumerate(sorted({r.xway for r in rows if r.type == 0})[:BASE])}
    kept = [row for row in rows if row.type == 2 or row.xway in roads]
    vids = {vid: i for i, vid in enumerate(sorted({row.vid for row in kept}))}
    kept = [row._replace(vid=vids[row.vid], xway=roads.get(row.xway, -1)) for row in kept]
    tolls = [
        (vids[v], day, roads[x], t) for v, day, x, t in found.tolls if v in vids and x in roads
    ]
    past = [(d, m, roads[x], *more) for d, m, x, *more in found.segment_history if x in roads]
    return Scenario(kept, reference.to_text(kept), tolls, past)


@pytest.fixture(scope="session")
def directory(case: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario's rows as a directory of two expressways' files."""
    place = tmp_path_factory.mktemp("copies")
    rows, _ = reference.parse(case.text)
    layout = Layout(place)
    layout.traffic(0, "csv").parent.mkdir()
    for xway in range(BASE):
        own = [row for row in rows if (row.xway if row.type != 2 else row.qid) % BASE == xway]
        layout.traffic(xway, "csv").write_text(reference.to_text(own))
    manifest = {
        "version": MANIFEST_VERSION,
        "complete": True,
        "parameters": {"format": "csv", "expressways": BASE},
        "totals": {
            "vehicles": max(row.vid for row in rows) + 1,
            "queries": max(row.qid for row in rows) + 1,
        },
    }
    layout.manifest.write_text(json.dumps(manifest))
    return place


@pytest.fixture(scope="session")
def history(case: Scenario) -> History:
    return history_of(case.tolls, case.segment_history)
