"""The operators give the reference's answers without a compiler as well.

Numba's language is not Python's, and a test of compiled code alone does not notice where the two
differ. Coverage and debuggers see only what Python runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from linearroad import schema
from linearroad.network import Network
from linearroad.operators import (  # fmt: skip
    accidents,
    accounts,
    brandeis,
    brandeis_accidents,
    check,
    digests,
    requests,
    statistics,
    thesis_accidents,
    thesis_accounts,
    thesis_tolls,
    thesis_vehicles,
    tolls,
    trips,
    vehicles,
    walmart,
)
from linearroad.rowforms import PAPER, THESIS
from linearroad.rules import Tariff, rules_named

import xstream as xs
from tests.linearroad.engine import answers_of, history_of
from tests.linearroad.operators import test_thesis as thesis
from tests.linearroad.operators.test_against_reference import RULES, expected
from tests.linearroad.operators.uncompiled import PlainStream, as_records, with_record_types
from tests.reference.linearroad_strategies import Scenario, scenario

ROOT = Path(__file__).resolve().parents[3]
MODULES = (
    schema, accidents, accounts, brandeis, brandeis_accidents, check, digests, requests, statistics,
    thesis_accidents, thesis_accounts, thesis_tolls, thesis_vehicles, tolls, trips, vehicles,
    walmart,
)  # fmt: skip
CHUNK = 97

uncompiled = pytest.mark.skipif(
    not numba.config.DISABLE_JIT, reason="runs in a process without a compiler, see below"
)


class PlainHistory:
    """The tables of a history, with rows that have attributes."""

    def __init__(self, tolls: Sequence[Any], segments: Sequence[Any]) -> None:
        self.known = history_of(tolls, segments)
        self.knows_segments = self.known.knows_segments

    def toll_tables(self) -> Any:
        return as_records(self.known.toll_tables())

    def sum_tables(self) -> Any:
        return as_records(self.known.sum_tables())


def raw(table: np.ndarray, end: int) -> list[dict[str, Any]]:
    """The rows as the query takes them, in chunks; `end` is their last second."""
    return [
        {
            "rows": part.T.reshape(-1),
            "origin": np.arange(at + 1, at + 1 + len(part), dtype=np.int64),
            "upto": end if at + CHUNK >= len(table) else -1,
        }
        for at, part in ((at, table[at : at + CHUNK]) for at in range(0, len(table), CHUNK))
    ]


def run_plainly(
    network: Network, rows: list[dict[str, Any]], history: PlainHistory, form: int
) -> tuple[list[tuple], list[tuple], int]:
    """The seconds with their answers, the rejects, and the number of implausible speeds."""
    seconds = network.seconds(PlainStream(rows), form=form)
    part = network.part(seconds, history, 0)
    tables = [*part.tables, network.balances([part.money])]
    answered = [
        tuple(one[name] for name in schema.ANSWERS) for stream in tables for one in stream.tuples
    ]
    rejects = [
        tuple(row)
        for stream in (seconds, part.reports)
        for one in stream.tuples
        for row in one["reject"].tolist()
    ]
    return answered, sorted(rejects), sum(one["implausible"] for one in part.reports.tuples)


def run_uncompiled(case: Scenario, rules: str) -> tuple[list, list, int]:
    table = np.array([tuple(row) for row in case.rows], np.int32).reshape(-1, 15)
    network = Network(xs.Query("linear road"), rules_named(rules))
    end = int(check.stream_times(tuple(table.T), 0)[-1])
    history = PlainHistory(case.tolls, case.segment_history)
    answered, rejects, implausible = run_plainly(network, raw(table, end), history, PAPER.number)
    answers = [answer for second in answered for answer in answers_of(*second)]
    return sorted(answers), rejects, implausible


def run_thesis_uncompiled(case: thesis.Scenario) -> tuple[list, list]:
    columns = THESIS.columns(tuple(np.array([row.row() for row in case.rows], np.int32).T))
    network = Network(xs.Query("linear road"), rules_named("thesis", Tariff(*case.constants)))
    rows = raw(np.stack(columns).T, int(THESIS.times(columns, 0)[-1]))
    history = PlainHistory([], case.segment_history)
    answered, rejects, _ = run_plainly(network, rows, history, THESIS.number)
    return sorted(answer for second in answered for answer in thesis.answers_of(*second)), rejects


@uncompiled
@pytest.mark.parametrize("rules", RULES)
def test_plain_functions_give_the_references_answers(
    rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_record_types(MODULES, monkeypatch)
    case = scenario(0)
    assert run_uncompiled(case, rules) == expected(case, rules)


@uncompiled
def test_plain_functions_give_the_answers_of_the_thesis(monkeypatch: pytest.MonkeyPatch) -> None:
    with_record_types(MODULES, monkeypatch)
    case = thesis.scenario(0)
    assert run_thesis_uncompiled(case) == thesis.expected(case)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="this is such a process")
def test_the_operators_run_without_a_compiler(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", str(Path(__file__).relative_to(ROOT))],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "XSTREAM_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(RULES) + 1} passed" in done.stdout
