"""`xstream bench live`: runs that a page watches, in turns with runs that nobody watches."""

from __future__ import annotations

import numpy as np
import pytest

import xstream as xs
from xstream.bench import live as module
from xstream.bench.live import CHAIN, live
from xstream.bench.settings import Settings


def test_every_second_run_is_watched_and_the_cost_is_a_percentage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched: list[str] = []
    begin = xs.Live.begin

    def counted(self: xs.Live, run: xs.Run) -> None:
        watched.append(run.query.name)
        begin(self, run)

    monkeypatch.setattr(xs.Live, "begin", counted)
    settings = Settings(trials=2, seconds=0.01, operators=20, window=256)
    report = live(settings, CHAIN, xs.Live(say=lambda line: None))
    assert watched == ["20 operators"] * 4  # the first frame of the page, warming up, two trials
    alone, with_page = (
        [each.samples_per_second for each in result.trials] for result in report.results
    )
    assert len(alone) == len(with_page) == 2
    cost, _, beside = report.figures
    assert cost.ceiling == beside.ceiling == 1.0
    assert beside.value > 0  # a frame takes some time
    ratios = [first / second for first, second in zip(alone, with_page, strict=True)]
    assert cost.value == pytest.approx(100 * (np.exp(np.mean(np.log(ratios))) - 1))


def test_the_page_has_to_get_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", "")
    with pytest.raises(AssertionError, match="has not had any frame"):
        live(
            Settings(trials=1, seconds=0.01, operators=2, window=256),
            CHAIN,
            xs.Live(say=lambda line: None),
        )
