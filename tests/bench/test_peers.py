"""Other engines: missing ones are reported, wrong answers are refused."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xstream.bench import peers
from xstream.bench.elementwise import Elementwise
from xstream.bench.queries import Declared, Passchain, Silencefilter, Statfilter
from xstream.bench.settings import Settings

NOISE = np.random.default_rng(0).normal(0.0, 0.03, 64 * 20).astype(np.float32)
NOISE[: 64 * 5] *= 0.1
SETTINGS = Settings(trials=2, seconds=0.001)
BENCHMARKS: dict[str, type[Declared]] = {
    "passchain": Passchain,
    "statfilter": Statfilter,
    "silencefilter": Silencefilter,
}


def test_missing_peers_are_reported_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = ("GNU Radio", "on_gnuradio.py", "/nowhere/python3")
    monkeypatch.setattr(peers, "PEERS", (nowhere,))
    found, missing = peers.measure_peers("passchain", Passchain(NOISE, 64), SETTINGS)
    assert not found
    assert missing == ["GNU Radio is missing: there is no /nowhere/python3"]


def test_a_peer_whose_module_is_missing_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "on_nothing.py").write_text("import a_module_that_is_not_there")
    monkeypatch.setattr(peers, "_HERE", tmp_path)
    monkeypatch.setattr(peers, "PEERS", (("nothing", "on_nothing.py", sys.executable),))
    _, missing = peers.measure_peers("passchain", Passchain(NOISE, 64), SETTINGS)
    assert "nothing is missing" in missing[0]
    assert "a_module_that_is_not_there" in missing[0]


def test_a_peer_with_other_samples_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Any] = {"name": "way", "samples_per_second": [1.0], "digest": "other"}
    monkeypatch.setattr(peers, "_ask", lambda *_: {"version": "1", "ways": [wrong]})
    with pytest.raises(AssertionError, match="its output differs from ours"):
        peers.measure_peers("passchain", Passchain(NOISE, 64), SETTINGS)


def test_only_the_peers_that_were_asked_for_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", [(name, "on_x.py", "/nowhere") for name in "abc"])
    _, missing = peers.measure_peers("passchain", Passchain(NOISE, 64), SETTINGS, only="b")
    assert missing == ["b is missing: there is no /nowhere"]


@pytest.mark.slow
@pytest.mark.parametrize("stages", [1, 10])
def test_gnu_radio_multiplies_as_we_do(stages: int) -> None:
    if subprocess.run(["/usr/bin/python3", "-c", "import gnuradio"], check=False).returncode:
        pytest.skip("GNU Radio is not installed: make bench-peers")
    declared = Elementwise(NOISE, 64, operators=stages)
    found, missing = peers.measure_peers("elementwise", declared, SETTINGS, only=("GNU Radio",))
    assert not missing
    assert [name.split(", ")[1] for name in found] == [f"{stages} multiply_const_ff blocks"]


@pytest.mark.slow
@pytest.mark.parametrize("work", BENCHMARKS)
@pytest.mark.parametrize("peer", ["bytewax", "streamz", "polars", "duckdb"])
def test_installed_peers_give_our_answers(
    peer: str, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed: make bench-peers")
    chosen = tuple(known for known in peers.PEERS if known[0] == peer)
    monkeypatch.setattr(peers, "PEERS", chosen)
    declared = BENCHMARKS[work](NOISE, 64)
    found, missing = peers.measure_peers(work, declared, SETTINGS)
    assert not missing
    assert all(result.samples_per_second > 0 for result in found.values())
