"""`xstream linearroad validate`: computes expected answers, compares, and writes the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linearroad.failures import one_sentence
from linearroad.generation.manifest import write_json
from linearroad.spark import attempt, check_storage, session
from linearroad.storage import absolute, check_writable, is_remote, place, rename, spark_uri
from linearroad.validation import thesis
from linearroad.validation.answers import RULES, Run, emits_differ, read_answers, read_run
from linearroad.validation.comparison import Comparison, compare
from linearroad.validation.delays import delays
from linearroad.validation.expected import expect
from linearroad.validation.history import History, find_history
from linearroad.validation.progress import Say, quiet
from linearroad.validation.rows import input_files, read_input
from linearroad.validation.tables import Frame, Workshop, workshop
from linearroad.validation.verdict import Verdict, share, type_figures
from linearroad.validation.words import in_words
from xstream.console import check_output_file, interrupted_with
from xstream.errors import InputError

__all__ = ["HistoryPaths", "Shown", "validate"]

FIRST = 20  # differences in `validation.json` and on the terminal
IN_REPORT = 500
MEMORY, EXECUTOR_MEMORY = "5g", "3g"  # of Java: local, and in each worker of a cluster
DIFFERENCES, VALIDATION = "differences.parquet", "validation.json"
MOST_MINUTES = (2**31 - 1) // 60  # Time is an int32


@dataclass(frozen=True)
class HistoryPaths:
    """The history of the run: the same options as those of `run`."""

    directory: Path | None = None
    tolls: Path | None = None
    segments: Path | None = None


@dataclass(frozen=True)
class Shown:
    """A verdict, and the differences that a report shows."""

    verdict: Verdict
    differences: list[dict[str, Any]]


def validate(
    input: Path, output: Path, history: HistoryPaths | None = None, rules: str | None = None,
    minutes: int | None = None, master: str | None = None, say: Say = quiet,
    tariff: dict[str, int] | None = None,
) -> Shown:  # fmt: skip
    """Judge a run's directory, or a file of answers of any system.

    Writes `validation.json` and the differences into the directory, or next to the file.
    """
    began = time.monotonic()
    input, output = place(input), place(output)
    run = read_run(output)
    output = run.directory
    rules = rules or str(run.summary.get("rules", "paper"))
    if rules not in RULES:
        raise InputError(f"--rules must be one of {', '.join(RULES)}, not {rules!r}")
    if minutes is not None and not 1 <= minutes <= MOST_MINUTES:
        raise InputError(f"--minutes must be from 1 to {MOST_MINUTES}, not {minutes}")
    thesis.Tariff(**(tariff or {}))  # refused before Spark starts, and under any rules
    size = sum(file.stat().st_size for file in input_files(input))
    given = history or HistoryPaths()
    paths = HistoryPaths(*map(absolute, (given.directory, given.tolls, given.segments)))
    check_writable(output)
    for name in (VALIDATION, DIFFERENCES):
        if not is_remote(output):
            check_output_file(output / name)
    with one_sentence(output):
        (output / VALIDATION).unlink(missing_ok=True)  # an older verdict no longer applies
        say("starting Spark")
        memory = MEMORY if (master or "local").startswith("local") else EXECUTOR_MEMORY
        with (
            interrupted_with(f"nothing is said about the answers in {output}"),
            session(master, "validate", memory) as spark,
            workshop(spark, output, size) as shop,
        ):
            shown = _validate(shop, input, run, paths, rules, minutes, tariff, say)
        shown.verdict.seconds = round(time.monotonic() - began, 1)
        write_json(output / VALIDATION, shown.verdict.as_dict())
    return shown


def _validate(
    shop: Workshop, input: Path, run: Run, paths: HistoryPaths, rules: str, minutes: int | None,
    tariff: dict[str, int] | None, say: Say,
) -> Shown:  # fmt: skip
    check_storage(shop.spark, input, run.directory)
    before, covered = _covered(run, minutes)
    known = find_history(shop, paths.directory, paths.tolls, paths.segments)
    if rules == "thesis":
        return _validate_thesis(shop, input, run, known, tariff, before, covered, say)
    say("reading the answers and the input")
    answers = read_answers(shop, run)
    rows = read_input(shop, input, before)
    say(f"following the vehicles of {rows.rows:,} rows")
    expected = expect(shop, rows, known, rules, say)
    say("comparing")
    timed = emits_differ(shop, answers) if run.timed is None else run.timed
    found = compare(shop, expected, answers, timed, run.ordered)
    verdict = Verdict(
        rules=rules,
        speed=run.summary.get("speed", 1 if timed else "unknown"),
        paced=timed,
        rows=rows.rows,
        bad_rows=rows.bad_rows,
        last_second=rows.last_second,
        covered=covered,
        rows_by_second=rows.rows_by_second,
    )
    _count(shop, verdict, found)
    if timed:
        say("measuring delays")
        _time(shop, verdict, answers)

    def described() -> Frame:
        return in_words(shop, found.differences, expected, rows.reports)

    return Shown(verdict, _described(shop, run, verdict, described, say))


def _validate_thesis(
    shop: Workshop, input: Path, run: Run, known: History, tariff: dict[str, int] | None,
    before: int | None, covered: str, say: Say,
) -> Shown:  # fmt: skip
    """The same by the rules of the thesis; xstream's own runs must use the start of the minute."""
    used = thesis.Tariff(**{**run.summary.get("tariff", {}), **(tariff or {})})
    say("reading the answers and the input")
    answers = thesis.read_answers(shop, run.answers)
    if run.interrupted_at is not None:
        answers = answers.where(f"arrival_ms IS NULL OR arrival_ms < 1000L * {run.interrupted_at}")
    rows = thesis.read_rows(shop, input, before)
    say(f"following the vehicles of {rows.rows:,} rows")
    expected = thesis.expect(shop, rows, known.segments, used, answers, run.ordered)
    say("comparing")
    found, matched, timed = thesis.compare(shop, expected, answers, run.timed)
    verdict = Verdict(
        rules="thesis",
        speed=run.summary.get("speed", 1 if timed else "unknown"),
        paced=timed,
        rows=rows.rows,
        bad_rows=rows.bad_rows,
        last_second=rows.last_second,
        covered=covered,
        types=type_figures(thesis.LIMITS_S),
        rows_by_second=rows.rows_by_second,
    )
    _count(shop, verdict, found)
    if timed:
        say("measuring delays")
        _time(shop, verdict, matched)
    return Shown(verdict, _described(shop, run, verdict, lambda: found.differences, say))


def _covered(run: Run, minutes: int | None) -> tuple[int | None, str]:
    """The second before which rows must be answered; a sentence if not the whole input counts."""
    limit = minutes if minutes is not None else run.summary.get("minutes")
    ends = [] if limit is None else [(60 * int(limit), f"the first {int(limit)} minutes only")]
    if run.interrupted_at is not None:
        told = f"seconds before {run.interrupted_at:,} only, for the run was interrupted"
        ends.append((run.interrupted_at, told))
    return min(ends, default=(None, ""))


def _count(shop: Workshop, verdict: Verdict, found: Comparison) -> None:
    for row in shop.rows(found.minutes):
        if row["type"] is None:
            continue
        figures = verdict.types[row["type"]]
        figures.expected += row["expected"]
        figures.answered += row["answered"]
        figures.right += row["right"]
        verdict.minutes.append(
            {
                **row,
                "precision": share(row["right"], row["answered"]),
                "recall": share(row["right"], row["expected"]),
            }
        )
    verdict.minutes.sort(key=lambda row: (row["type"], row["minute"]))
    for row in shop.rows(found.differences.groupBy("type", "kind").count()):
        if row["type"] is None:
            verdict.unreadable += row["count"]
        else:
            verdict.types[row["type"]].differences[row["kind"]] += row["count"]


def _seconds(row: dict[str, Any]) -> dict[str, float]:
    names = ("p50", "p90", "p99", "p999")
    quantiles = dict(zip(names, (ms / 1000 for ms in row["quantiles"]), strict=True))
    return {**quantiles, "worst": row["worst_ms"] / 1000}


def _time(shop: Workshop, verdict: Verdict, answers: Frame) -> None:
    figures = delays(shop, answers)
    for row in figures["types"]:
        verdict.types[row["type"]].delay_s = _seconds(row)
    by_minute = {(row["type"], row["minute"]): _seconds(row) for row in figures["minutes"]}
    for row in verdict.minutes:
        row["delay_s"] = by_minute.get((row["type"], row["minute"]))
    verdict.histogram = figures["histogram"]


def _described(
    shop: Workshop, run: Run, verdict: Verdict, differences: Callable[[], Frame], say: Say
) -> list[dict[str, Any]]:
    """Write all differences to a file, and return the first ones."""
    target = run.directory / DIFFERENCES
    target.unlink(missing_ok=True)
    if verdict.passed:
        return []
    say("putting the differences into words")
    told = shop.keep(differences())
    ordered = told.orderBy("time", "type", "key", "kind")
    folder = shop.folder / "one-file"
    attempt(lambda: ordered.coalesce(1).write.parquet(spark_uri(folder)))
    (part,) = folder.glob("part-*.parquet")
    rename(part, target)
    first = shop.rows(ordered.limit(IN_REPORT))
    verdict.first_differences = [row["sentence"] for row in first[:FIRST]]
    verdict.differences_file = DIFFERENCES
    return first
