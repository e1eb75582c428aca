"""`xstream bench APPLICATION`: a small run of each, checked, with its figures."""

from __future__ import annotations

import json

import pytest

from tests.apps.command import call
from xstream.bench.application import Form
from xstream.bench.queries import Engine
from xstream.query import Query, SinkRef

SMALL = ("--trials", "2", "--seconds", "0.01")
FIGURES = {
    "detectaudio": ["over all channels", "throughput cost of sync", "against the paper's"],
    "detectaudio-blocks": [
        "over all channels", "throughput cost of sync", "against the paper's",
    ],
    "localise": ["over all arrays", "of real time", "median error of positions",
                 "largest error of positions"],
    "netmon": ["packets of 256 bytes, 6 receivers", "against the paper's", "packets delivered"],
    "pipeline": ["of one sensor", "against the paper's"],
}  # fmt: skip


@pytest.mark.parametrize("application", FIGURES)
def test_an_application_is_measured_as_the_microbenchmarks_are(
    application: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "bench", application, *SMALL, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["benchmark"] == application
    assert found["samples_per_second"] > 0
    assert [figure["name"] for figure in found["figures"]] == FIGURES[application]
    assert found["checked"]
    assert call(monkeypatch, "bench", application, *SMALL, "--scheduler", "fifo") == 0
    assert "figure" in capsys.readouterr().out


def test_another_number_of_tuples_than_before_is_refused() -> None:
    import numpy as np

    import xstream as xs

    widths = iter([4, 2])

    def declare(query: Query, repeat: int) -> SinkRef:
        source = xs.io.array(np.zeros(8), window=next(widths), repeat=repeat)
        return query.source(source).count()

    form = Form("changing", declare)
    form.trial(Engine(), 1)
    with pytest.raises(AssertionError, match="4 tuples came out, not 2 as before"):
        form.trial(Engine(), 1)
