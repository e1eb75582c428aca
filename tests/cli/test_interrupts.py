"""Ctrl-C ends every measuring command: exit code 130, one sentence, no result of what was cut."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import xstream as xs
from tests.apps.command import call
from tests.cli.ctrl_c import ctrl_c_after
from xstream.bench import peers
from xstream.bench.children import run_child
from xstream.bench.profile import _profile, compare, variants
from xstream.bench.queries import Engine, Passchain
from xstream.bench.settings import Settings
from xstream.bench.trials import Result, Trial

#: Each takes at least many seconds.
COMMANDS = {
    "passchain": ("bench", "passchain", "--seconds", "60"),
    "statfilter": ("bench", "statfilter", "--seconds", "60", "--megabytes", "0", "--json"),
    "silencefilter": ("bench", "silencefilter", "--seconds", "60"),
    "enginebench": ("bench", "enginebench", "--seconds", "60", "--json"),
    "ratecontrol": ("bench", "ratecontrol", "--seconds", "60"),
    "pythonop": ("bench", "pythonop", "--seconds", "60"),
    "netmon": ("bench", "netmon", "--trials", "10000"),
    "pipeline": ("bench", "pipeline", "--seconds", "60"),
    "profile": ("profile", "pipeline", "--seconds", "60", "--json"),
    "fig6": ("experiment", "fig6", "--trials", "10000"),
    "fig7": ("experiment", "fig7", "--seconds", "60", "--json"),
    "evaluate": ("detectaudio", "evaluate", "--seconds", "600"),
    "leaks": ("leaks", "evaluate", "--seconds", "3600", "--json"),
}


# An interrupt in the middle of an import leaves the file of the module to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("after_s", [0.1, 1.0])
def test_ctrl_c_ends_a_command_with_one_sentence_and_no_result(
    command: str,
    after_s: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with ctrl_c_after(after_s):
        assert call(monkeypatch, *COMMANDS[command]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("xstream: interrupted")
    assert "Traceback" not in said.err
    assert not list(tmp_path.rglob("*.*"))


def _cut() -> xs.Query:
    """A query in whose middle Ctrl-C is pressed."""

    def pressed(segment: xs.SigSeg) -> bool:
        if segment.start:
            raise KeyboardInterrupt
        return True

    query = xs.Query()
    query.source(xs.io.array(np.zeros(8, np.float32), window=4)).filter(pressed).count()
    return query


def test_a_run_that_is_cut_short_is_no_measurement() -> None:
    with pytest.raises(KeyboardInterrupt):
        Engine().run(_cut())
    with pytest.raises(KeyboardInterrupt):
        Engine().timed_run(_cut())
    with pytest.raises(KeyboardInterrupt):
        compare(_cut, variants("refcount-lazy", "df", "1"), trials=1)
    with pytest.raises(KeyboardInterrupt):
        _profile(_cut(), variants("refcount-lazy", "df", "1")[0], Result("", (Trial(1, 1.0),)))


SCRIPT = """
import os, signal, threading, numpy as np, xstream as xs
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
for number in range(2):
    q = xs.Query()
    out = q.source(xs.io.array(np.zeros(4096, np.float32), repeat=None)).count()
    print(q.run()[out])
"""


@pytest.mark.parametrize("number", [1, 2])
def test_a_script_whose_query_is_cut_short_is_not_profiled(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "endless.py"
    script.write_text(SCRIPT)
    with ctrl_c_after(60):  # the script presses it
        assert call(monkeypatch, "profile", script, "--query", number, "--json") == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert "xstream: interrupted: the profile was not finished" in said.err


OWN = """
import os, signal
from xstream.bench.experiment import Experiment, Finding, Unavailable
def measure(scale):
    yield {{"trial": 0}}
    {what}
EXPERIMENT = Experiment("{name}", "Title", "Paper.", measure, (),
                        lambda rows: Finding([], ("rows",), [(len(rows),)], "Fine."))
"""


def own_experiments(home: Path, monkeypatch: pytest.MonkeyPatch, **bodies: str) -> None:
    """Experiments of that name and end, and no others."""
    for name, what in bodies.items():
        (home / name).mkdir(parents=True)
        (home / name / "experiment.py").write_text(OWN.format(name=name, what=what))
    monkeypatch.setattr("xstream.bench.experiment._homes", lambda: [home])


def test_finished_experiments_stay_and_the_cut_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_experiments(
        tmp_path / "home", monkeypatch, i_first="return",
        i_second="os.kill(os.getpid(), signal.SIGINT); yield {'trial': 1}", i_third="return",
    )  # fmt: skip
    out = tmp_path / "out"
    with ctrl_c_after(60):  # the second presses it
        assert call(monkeypatch, "experiment", "all", "--out", out, "--json") == 130
    said = capsys.readouterr()
    assert "i_second was not finished; none of its results are written" in said.err
    assert "i_first: finished" in said.err
    assert [path.name for path in out.iterdir()] == ["i_first"]
    rows = json.loads(said.out)
    assert rows[0]["experiment"] == "i_first"
    assert rows[1:] == [
        {"experiment": name, "left_out": "interrupted"} for name in ("i_second", "i_third")
    ]


def test_what_cannot_be_run_here_is_left_out_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_experiments(
        tmp_path / "home", monkeypatch, u_first="raise Unavailable('it needs a compiler')",
        u_second="return",
    )  # fmt: skip
    out = tmp_path / "out"
    assert call(monkeypatch, "experiment", "all", "--out", out) == 0
    assert "left out: u_first (it needs a compiler)" in capsys.readouterr().out
    assert [path.name for path in out.iterdir()] == ["u_second"]
    assert call(monkeypatch, "experiment", "all", "--out", out, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[1] == {"experiment": "u_first", "left_out": "it needs a compiler"}
    assert call(monkeypatch, "experiment", "u_first", "--out", out) == 2


def test_a_program_that_is_measured_ends_with_the_command_and_so_do_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "on_slow.py").write_text(
        "import os, subprocess, sys, time\n"
        f"note = {str(tmp_path / 'pids')!r}\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(note + '.part', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename(note + '.part', note)\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr(peers, "_HERE", tmp_path)
    monkeypatch.setattr(peers, "PEERS", (("slow", "on_slow.py", sys.executable),))
    samples = np.zeros(64, np.float32)
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(1.5):
        peers.measure_peers("passchain", Passchain(samples, 64), Settings(trials=1))
    pids = (tmp_path / "pids").read_text().split()
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_child_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_child(["sleep", "600"], limit_seconds=0.1)


@pytest.mark.parametrize("after_s", [0.05, 0.6])
def test_ctrl_c_in_a_process_of_its_own_also_while_it_is_loaded(after_s: float) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from xstream.__main__ import main; print(1, flush=True); main()",
         "bench", "enginebench", "--seconds", "60"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as child:  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(after_s)
        os.kill(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert errors.strip().startswith("xstream: interrupted")
    assert len(errors.strip().splitlines()) == 1
