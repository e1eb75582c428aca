"""Profiles: what is counted is what happened, and every copy has somebody who caused it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import xstream as xs
from tests.apps.command import call
from xstream.bench.profile import compare, variants
from xstream.bench.subjects import script_query
from xstream.report.profile_page import copy_rows, profile_page, size

NOISE = np.random.default_rng(0).normal(size=64 * 40).astype(np.float32)


def declare() -> xs.Query:
    """Overlapping windows and a sync: something to copy for every manager."""
    query = xs.Query("overlapping")
    left = query.source(xs.io.array(NOISE, window=64), name="left")
    right = query.source(xs.io.array(NOISE, window=64), name="right")
    left.rewindow(100, gap=-20).mean().count()
    left.threshold(1.5).sync(left, right).count()
    return query


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_every_byte_that_is_copied_is_some_operators(scheduler: str, memory: str) -> None:
    run = declare().run(scheduler, memory, tuple_burst=4, profile=True)
    costs = list(run.costs.values())
    for reason, copied in run.memory.copied_for.items():
        assert sum(cost.copied_for[reason] for cost in costs) == copied
    assert sum(cost.bytes_copied for cost in costs) == run.memory.bytes_copied
    loaded = 2  # the recordings, before the run
    assert sum(cost.allocations for cost in costs) == run.memory.allocations - loaded
    assert sum(cost.reallocations for cost in costs) == run.memory.reallocations
    assert 0 < sum(cost.manager_ns for cost in costs) <= run.manager_ns


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_a_profiled_run_counts_what_a_plain_one_does(memory: str) -> None:
    plain = declare().run(memory=memory)
    profiled = declare().run(memory=memory, profile=True)
    assert plain.memory.bytes_copied == profiled.memory.bytes_copied
    assert plain.memory.allocations == profiled.memory.allocations
    assert all(cost.bytes_copied == cost.manager_ns == 0 for cost in plain.costs.values())
    assert plain.manager_ns == 0
    for name, stats in plain.stats.items():
        assert profiled.stats[name].tuples == stats.tuples


def test_handing_a_segment_over_is_put_down_to_who_gets_it() -> None:
    query = xs.Query()
    stream = query.source(xs.io.array(NOISE, window=64), name="source")
    stream.passed(name="first").passed(name="second").count(name="end")
    costs = query.run("fifo", "copy-always", profile=True).costs
    for name in ("first", "second", "end"):
        assert costs[name].copied_for["pass"] == NOISE.nbytes
    assert costs["source"].copied_for == {
        "pass": 0, "append": 0, "subseg": NOISE.nbytes, "materialise": 0, "edit": 0,
    }  # fmt: skip


def test_appends_are_sync_s_where_the_manager_copies_them() -> None:
    found = compare(declare, variants("refcount-copy,refcount-lazy", "df", "16"), trials=1)
    copying, lazy = found.profiles
    worst = max(copying.operators, key=lambda each: each.bytes_copied)
    assert worst.copied_for["append"] == worst.bytes_copied > 0
    assert lazy.memory.copied_for["append"] == 0
    assert copy_rows(copying.to_json())[0][0] == worst.name


def test_shares_make_up_the_whole_and_memory_is_watched() -> None:
    (profile,) = compare(declare, variants("refcount-lazy", "df", "none"), trials=2).profiles
    shares = (profile.manager_share, profile.operator_share, profile.engine_share)
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) == pytest.approx(1.0)
    assert len(profile.result.trials) == 2
    assert profile.timeline
    assert max(live for _, live in profile.timeline) <= profile.memory.peak_bytes
    assert profile.samples == 2 * len(NOISE)


def test_every_variant_that_is_named() -> None:
    assert len(variants("all", "all", "1,64,none")) == 4 * 4 * 3
    assert [each.batch for each in variants("refcount-lazy", "df", "none,7")] == [None, 7]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (("lazy", "df", "64"), "--memory is all, or of copy-always"),
        (("all", "lifo", "64"), "--scheduler is all, or of fifo"),
        (("all", "df", "0"), "--batch is a number of tuples"),
        (("all", "df", "1,x"), "--batch is a number of tuples"),
    ],
)
def test_variants_that_are_not_there_are_refused(how: tuple[str, str, str], sentence: str) -> None:
    with pytest.raises(xs.InputError, match=sentence):
        variants(*how)


SCRIPT = """
import sys
import numpy as np, xstream as xs
print("not to be seen", sys.argv[1:])
for number in range(2):
    q = xs.Query(f"query {number} of {sys.argv[1]}")
    out = q.source(xs.io.array(np.zeros(100), window=10)).rewindow(20).collect()
    try:
        print(len(q.run("fifo")[out]))
    except Exception:
        print("swallowed")
"""


def test_any_script_s_query_can_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    assert script_query(script, ["ours"]).name == "query 0 of ours"
    assert script_query(script, ["ours"], 2).name == "query 1 of ours"
    assert xs.Query.run.__name__ == "run"
    assert "not to be seen" not in capsys.readouterr().out
    with pytest.raises(xs.InputError, match="runs 2 queries"):
        script_query(script, ["ours"], 3)
    with pytest.raises(xs.InputError, match="IndexError"):
        script_query(script)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("values = [1][one]", "boom.py, line 6: values = [1][one]: IndexError: list index out of"),
        ("q.source(3)", "boom.py, line 6: q.source(3): "),
        ("src.map(lambda seg: seg / no, out=int).count()",
         "boom.py, line 6: src.map(lambda seg: seg / no, out=int).count(): "),
        ("q.(", "boom.py, line 6: q.(: SyntaxError: invalid syntax"),
    ],
)  # fmt: skip
def test_the_line_of_a_script_that_failed_is_named(
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = tmp_path / "boom.py"
    script.write_text(
        "import numpy as np, xstream as xs\none = 1\nq = xs.Query()\n"
        f"src = q.source(xs.io.array(np.zeros(4)))\n\n{line}\nq.run()\n"
    )
    assert call(monkeypatch, "profile", script, "--trials", 1, "--memory", "refcount-lazy") == 2
    err = capsys.readouterr().err
    assert f"xstream: {tmp_path}/{said}" in err
    assert len(err.strip().splitlines()) == 1


def test_an_iterator_that_serves_one_run_is_refused() -> None:
    query = xs.Query()
    query.source(xs.io.iterable(iter([1, 2]), out=int)).count()
    with pytest.raises(xs.InputError, match="an iterator serves one run only"):
        compare(lambda: query, variants("all", "df", "64"))


def test_the_command_prints_json_and_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, page, data = tmp_path / "mine.py", tmp_path / "page.html", tmp_path / "p.json"
    script.write_text(SCRIPT)
    how = ("--trials", "1", "--html", page, "--out", data)
    assert call(monkeypatch, "profile", script, *how, "--json", "--", "x") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["memory"] for each in found["profiles"]] == list(xs.MANAGER_NAMES)
    assert json.loads(data.read_text())["profile"]["query"] == "query 0 of x"
    assert "http" not in page.read_text().split("</style>")[0]
    assert "Causes of copies" in page.read_text()
    assert call(monkeypatch, "profile", script, "--trials", "1", "--", "x") == 0
    said = capsys.readouterr().out
    assert "which operators cause the copies" in said
    assert "refcount-lazy, df, batch 64" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing",), "nothing is neither a script nor an application"),
        (("nothing.py",), "nothing.py is not a script that can be read"),
        (("detectaudio", "--window", "0"), "--window must be from 1 to 1,048,576, not 0"),
        (("detectaudio", "--window", "1000000"), "--window must be at most 60,000"),
        (("detectaudio", "--seconds", "0"), "--seconds must be from 0.0001 to 60, not 0"),
        (("detectaudio", "--seconds", "nan"), "--seconds must be from 0.0001 to 60, not nan"),
        (("detectaudio", "--trials", "0"), "--trials must be from 1 to 10,000"),
        (("x.py", "--query", "0"), "--query must be from 1"),
        (("detectaudio", "--batch", "99999999999999"), "--batch is a number of tuples (1 to"),
        (("pipeline", "--html", "/proc/none/p.html"), "/proc/none/p.html cannot be written"),
        (("pipeline", "--out", "/proc"), "/proc cannot be written: it is a directory"),
        (("detectaudio", "--clock", "sun"), "--clock must be wall or processor"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, "profile", *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_applications_can_be_profiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ("--seconds", "0.005", "--trials", "1", "--memory", "refcount-lazy", "--json")
    assert call(monkeypatch, "profile", "pipeline", *how) == 0
    names = [
        each["name"] for each in json.loads(capsys.readouterr().out)["profiles"][0]["operators"]
    ]
    assert "haar" in names


def test_pages_escape_what_users_call_their_queries() -> None:
    query = xs.Query("<b>mine</b>")
    query.source(xs.io.array(NOISE), name="<i>").count()
    found = compare(lambda: query, variants("refcount-lazy", "df", "1"), trials=1)
    text = profile_page(found.to_json())
    assert "<b>mine" not in text
    assert "&lt;b&gt;mine" in text
    assert size(2_500) == "2.5 kB"
