"""Runs the tests of a file on all their engines, judges the results and keeps them in a folder.

DIR/NAME/ENGINE/run-1/   task.json, engine.log, results.jsonl, outcome.json
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xstream import InputError
from xstream.console import Progress, command_line, whole_file
from yabench.answers import recorded
from yabench.engines import Engine, engine_of
from yabench.judge import judge
from yabench.oracle import Oracle, SparqlOracle
from yabench.record_oracle import SqlOracle
from yabench.runner import Outcome, run_engine
from yabench.testfile import Test
from yabench.weather import Records, as_records, generate, rdf_of

__all__ = ["oracle_of", "outcomes", "run_tests"]


def oracle_of(test: Test, records: Records) -> Oracle:
    """Return the oracle of a test over its stream."""
    if test.language == "sparql":
        return SparqlOracle(rdf_of(records), test.oracle)
    return SqlOracle(records, test.oracle)


def run_tests(tests: Sequence[Test], out: Path, progress: Progress) -> list[dict[str, Any]]:
    """Run all tests; those whose outcome is in the folder already are not run again."""
    engines = {name: engine_of(name, test.form) for test in tests for name in test.engines}
    wanted = [
        (test, engines[name], run)
        for test in tests
        for name in test.engines
        for run in range(1, test.runs + 1)
    ]
    out.mkdir(parents=True, exist_ok=True)
    progress.begin(len(wanted), "run")
    found: list[dict[str, Any]] = []
    streams: dict[tuple[int, ...], Records] = {}
    for number, (test, engine, run) in enumerate(wanted):
        folder = out / test.name / _folder_name(engine.name) / f"run-{run}"
        kept = _kept(folder, test, engine)
        if kept is None:
            key = (test.stations, test.interval_ms, test.duration_ms, test.seed)
            if key not in streams:
                streams = {key: generate(*key)}
            kept = _run(test, engine, run, folder, streams[key])
            if kept["failure"]:
                progress.say(f"{test.name}, run {run}: {kept['failure']}")
        found.append(kept)
        progress.update(number + 1, f"{test.name} on {engine.name}")
    return found


def _folder_name(engine: str) -> str:
    return re.sub(r"[^\w.-]+", "_", engine).strip("_.")[-60:] or "engine"


def _kept(folder: Path, test: Test, engine: Engine) -> dict[str, Any] | None:
    """Return the outcome of an earlier run of the same test."""
    try:
        found: dict[str, Any] = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    same = isinstance(found, dict) and found.get("key") == test.key(engine.name)
    return found if same and not found.get("missing") else None


def _run(test: Test, engine: Engine, run: int, folder: Path, records: Records) -> dict[str, Any]:
    began = time.time()
    outcome = Outcome(failure=engine.missing)
    if not outcome.failure:
        outcome = run_engine(engine, test.task(engine.name), records, folder, test.speed)
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        "key": test.key(engine.name), "test": test.name, "title": test.title,
        "engine": engine.name, "run": run, "missing": bool(engine.missing),
        "stations": test.stations, "items": len(records), "published": test.published,
        "failure": outcome.failure, "fed_late_ms": outcome.fed_late_ms,
        "samples": outcome.samples, "date": began, "command": command_line(),
    }  # fmt: skip
    if not engine.missing:
        with whole_file(folder / "results.jsonl") as part, part.open("w", encoding="utf-8") as file:
            file.writelines(recorded(outcome.results, folder))
        found |= _judged(test, engine, records, outcome)
    with whole_file(folder / "outcome.json") as part:
        part.write_text(json.dumps(found), encoding="utf-8")
    return found


def _judged(test: Test, engine: Engine, records: Records, outcome: Outcome) -> dict[str, Any]:
    began = time.perf_counter()
    oracle = oracle_of(test, records)
    answers = outcome.answers()
    if engine.form == "ntriples" and test.language == "sql":
        answers = [each.with_bindings(as_records(each.bindings)) for each in answers]
    judged = {"strict": judge(oracle, test.windowing, answers).to_json()}
    if test.gracious:
        judged["gracious"] = judge(oracle, test.windowing, answers, gracious=True).to_json()
    return {"judged": judged, "oracle_s": time.perf_counter() - began}


def outcomes(folder: Path) -> list[dict[str, Any]]:
    """Return all outcomes in a folder, in the order of tests, engines and runs."""
    found = []
    for path in sorted(folder.glob("*/*/run-*/outcome.json")):
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    if not found:
        raise InputError(f"{folder} has no results of `xstream yabench run`")
    return sorted(found, key=lambda each: (each["date"], each["run"]))
