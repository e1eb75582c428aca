"""The result of probes counts only when a full stream has confirmed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from linearroad.rating import job as rating_module
from linearroad.rating import steps
from linearroad.rating.box import Box
from linearroad.rating.job import Rating, RatingOptions, rate
from linearroad.rating.originals import Originals
from linearroad.rating.steps import Setting, Step, run_step

MANIFEST = {
    "parameters": {"expressways": 10, "minutes": 180},
    "totals": {"reports": 1, "vehicles": 1, "queries": 1, "rows": 1},
}


def rated(
    monkeypatch: pytest.MonkeyPatch, out: Path, passes: Callable[[Step], bool], **options: Any
) -> Rating:
    """A rating whose runs pass as the test says."""

    def run(_: Any, step: Step, *__: Any) -> list[Any]:
        step.passed = passes(step)
        step.why = "" if step.passed else "second 7: too late"
        return []

    def validate(rating: Rating, *_: Any) -> None:
        rating.verdict = None if rating.options.quick else "right: all answers"

    account = SimpleNamespace(total=1.0, lines=())
    originals = Originals(np.zeros((10, 180, 5, 4), np.uint64), out, 170)
    for name, value in {
        "checked_base": lambda base: MANIFEST,
        "_validate": validate,
        "most_copies": lambda *_: 400,
        "account_of": lambda *_: account,
        "history_bytes": lambda base: 0,
    }.items():
        monkeypatch.setattr(rating_module, name, value)
    monkeypatch.setattr(Box, "prepare", lambda *_: originals)
    monkeypatch.setattr(Box, "step", run)
    monkeypatch.setattr(Rating, "write", lambda self: out)
    return rate(RatingOptions(out, out, **options), lambda _: None)


def test_a_full_stream_confirms_what_probes_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = rated(monkeypatch, tmp_path, lambda step: step.expressways <= 1000)
    assert (found.expressways, found.confirmed) == (1000, True)
    assert [(s.kind, s.expressways) for s in found.steps][-1] == ("full", 1000)
    assert found.sentence() == "L = 1,000 at 10 times the pace: every answer right and in time"


def test_a_quick_rating_claims_nothing_that_was_not_validated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = rated(monkeypatch, tmp_path, lambda step: step.expressways <= 1000, quick=True)
    assert found.verdict is None
    assert "right" not in found.sentence()
    assert found.sentence().endswith(
        "L = 1,000 at 10 times the pace: every answer in time, the copies' equal to the "
        "originals', which were not validated"
    )


def test_less_is_tried_where_a_full_stream_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    most = {"probe": 1000, "full": 850}
    found = rated(monkeypatch, tmp_path, lambda step: step.expressways <= most[step.kind])
    full = [(s.expressways, s.passed) for s in found.steps if s.kind == "full"]
    assert full == [(1000, False), (900, False), (810, True)]
    assert (found.expressways, found.confirmed) == (810, True)


@pytest.mark.parametrize("most", [10, 1000])
def test_nothing_is_claimed_that_no_full_stream_has_passed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    found = rated(
        monkeypatch, tmp_path, lambda s: s.kind == "probe" and s.expressways <= most
    )  # fmt: skip
    full = [s.expressways for s in found.steps if s.kind == "full"]
    assert len(full) == len(set(full)) == (1 if most == 10 else 3)  # none is run again
    assert (found.expressways, found.confirmed) == (0, False)
    assert found.sentence() == "not confirmed by a full stream: no L has passed"


def test_a_rating_that_is_interrupted_says_what_it_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def passes(step: Step) -> bool:
        if step.kind == "full" and step.expressways < 1000:
            raise KeyboardInterrupt
        return step.kind == "probe" and step.expressways <= 1000

    found = rated(monkeypatch, tmp_path, passes)
    assert found.interrupted
    assert found.expressways == 500  # the full stream of 1,000 has failed
    assert found.sentence().startswith("interrupted: L = 500")


def test_a_run_that_is_refused_is_not_taken_for_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "summary.json").write_text("{}")
    refused = ["xstream: 5,000 expressways need about 21.5 GiB of memory, and 8.0 GiB are free"]
    monkeypatch.setattr(steps, "call", lambda command, say: refused)
    step = Step(5000, "probe", 10.0, 170, 180)
    rows = run_step(
        step, Setting(tmp_path, 2, 10.0), tmp_path, np.zeros((10, 180, 5, 4)), None, print
    )  # fmt: skip
    assert rows == []
    assert not step.passed
    assert step.why == "5,000 expressways need about 21.5 GiB of memory, and 8.0 GiB are free"
