"""Generated directories: complete, reproducible, and completed by a second run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from linearroad import spark as sparks
from linearroad.files import TRAFFIC_COLUMNS, table_writer, whole
from linearroad.generation.job import generate
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import read_manifest
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.progress import Work
from linearroad.scratch import claimed

from xstream.errors import InputError, XStreamError

pytestmark = pytest.mark.spark


def checksums(out: Path) -> dict[str, str]:
    return {entry["file"]: entry["sha256"] for entry in read_manifest(out)["traffic"]}


def columns(out: Path, xway: int, form: str = "parquet") -> dict[str, np.ndarray]:
    table = pq.read_table(Layout(out).traffic(xway, form), partitioning=None)
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.mark.parametrize("partitions", [2, 5])
def test_the_bytes_do_not_depend_on_the_partitions(
    generated: Path, small: TrafficParameters, tmp_path: Path, partitions: int
) -> None:
    generate(small, tmp_path / "out", partitions=partitions)
    assert checksums(tmp_path / "out") == checksums(generated)


def test_a_stream_is_ordered_int32_with_page_checksums(generated: Path) -> None:
    for xway in range(3):
        path = Layout(generated).traffic(xway, "parquet")
        schema = pq.read_schema(path)
        assert tuple(schema.names) == TRAFFIC_COLUMNS
        assert {str(field.type) for field in schema} == {"int32"}
        rows = columns(generated, xway)
        assert np.all(np.diff(rows["time"]) >= 0)
        assert set(np.unique(rows["xway"][rows["type"] == 0])) == {xway}
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    broken = generated.parent / "damaged.parquet"
    broken.write_bytes(damaged)
    with pytest.raises(OSError, match=r"(?i)checksum|crc|corrupt|thrift"):
        pq.read_table(broken, page_checksum_verification=True)


def test_vids_are_dense_and_a_second_expressway_comes_after_the_first(generated: Path) -> None:
    spans: dict[int, list[tuple[int, int]]] = {}
    for xway in range(3):
        rows = columns(generated, xway)
        reports = rows["type"] == 0
        vid, when = rows["vid"][reports], rows["time"][reports]
        order = np.lexsort((when, vid))
        vids, begin, count = np.unique(vid[order], return_index=True, return_counts=True)
        first, last = when[order][begin], when[order][begin + count - 1]
        for one, a, b in zip(vids.tolist(), first.tolist(), last.tolist(), strict=True):
            spans.setdefault(one, []).append((a, b))
    assert sorted(spans) == list(range(read_manifest(generated)["totals"]["vehicles"]))
    twice = [sorted(trips) for trips in spans.values() if len(trips) > 1]
    assert twice
    assert all(len(trips) == 2 and trips[0][1] + 60 <= trips[1][0] for trips in twice)


def test_queries_ask_for_what_exists(generated: Path) -> None:
    rows = {
        name: np.concatenate([columns(generated, xway)[name] for xway in range(3)])
        for name in TRAFFIC_COLUMNS
    }
    kind = rows["type"]
    asked = kind != 0
    assert sorted(rows["qid"][asked].tolist()) == list(range(int(asked.sum())))
    assert np.all(rows["qid"][~asked] == -1)
    assert 0.007 < asked.sum() / (~asked).sum() < 0.013
    expenditure, travel = kind == 3, kind == 4
    assert rows["day"][expenditure].min() >= 1
    assert rows["day"][expenditure].max() <= 69
    for name, low, high in (("sinit", 0, 99), ("send", 0, 99), ("dow", 1, 7), ("tod", 1, 1440)):
        assert rows[name][travel].min() >= low
        assert rows[name][travel].max() <= high
    assert np.all(rows["sinit"][travel] != rows["send"][travel])
    for known in (expenditure, travel):
        assert set(np.unique(rows["xway"][known])) <= {0, 1, 2}


def test_a_second_run_finishes_what_is_missing(
    generated: Path, small: TrafficParameters, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    generate(small, out, partitions=2)
    path = Layout(out).traffic(1, "parquet")
    path.unlink()
    untouched = Layout(out).traffic(0, "parquet").stat().st_mtime_ns
    (path.parent / f".{path.name}.0.tmp").write_bytes(b"left by a killed worker")
    generate(small, out)
    assert checksums(out) == checksums(generated)
    assert Layout(out).traffic(0, "parquet").stat().st_mtime_ns == untouched
    assert not list(out.rglob("*.tmp"))
    assert not Layout(out).work.exists()


def test_other_parameters_are_refused_with_a_sentence(
    generated: Path, small: TrafficParameters, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="was generated with seed 5, not 6"):
        generate(replace(small, seed=6), generated)
    (tmp_path / "mine.txt").write_text("not yours")
    with pytest.raises(InputError, match="not empty"):
        generate(small, tmp_path)
    with pytest.raises(InputError, match="--format csv"):
        generate(small, tmp_path / "out", merged=True)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"minutes": 0}, "--minutes must be from 1 to 10080, not 0"),
        ({"minutes": 99_999_999}, "--minutes must be from 1 to 10080, not 99999999"),
        ({"from_minute": -1}, "--from-minute must be from 0 to 10080 less --minutes, not -1"),
        (
            {"from_minute": 10_080},
            "--from-minute must be from 0 to 10080 less --minutes, not 10080",
        ),
        ({"expressways": 0}, "--expressways must be from 1 to 100000, not 0"),
        ({"expressways": 100_000}, "there are 2,147,483,648 VIDs"),
        ({"seed": 2**63}, "--seed must be from 0 to"),
        ({"two_expressways_share": float("nan")}, "--two-expressways must be a share"),
    ],
)
def test_numbers_out_of_range_are_refused_at_once(numbers: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TrafficParameters(**{"expressways": 1, "minutes": 180, "seed": 1, **numbers})  # type: ignore[arg-type]


def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    small: TrafficParameters,
) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        generate(small, Path("/proc/nothing/here"))


def test_a_second_generation_into_one_directory_is_refused(
    small: TrafficParameters, tmp_path: Path
) -> None:
    work = Layout(tmp_path / "out").work
    work.mkdir(parents=True)
    manifest = {"version": 1, "parameters": small.as_dict(), "complete": False}
    Layout(tmp_path / "out").manifest.write_text(json.dumps(manifest))
    with claimed(work), pytest.raises(InputError, match="another process is generating"):
        generate(small, tmp_path / "out")


def test_progress_counts_what_was_done_before_and_what_tasks_note(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.work.mkdir()
    work = Work("simulating", "second", "simulated", {(0,): 480, (2,): 480, (3,): 480}, 480)
    assert work.done(layout) == 480
    layout.receipt("simulated", 0).write_text("{}")
    layout.progress("simulated", 2).write_text("60")
    layout.progress("simulated", 3).write_text("")
    layout.receipt("simulated", 1).write_text("{}")
    assert work.done(layout) == 480 + 480 + 60


def test_the_command_line_says_it_in_one_sentence(generated: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("xstream")), "linearroad", "generate",
         "--expressways", "3", "--minutes", "9", "--seed", "5", "--out", str(generated)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "generated with minutes 8, not 9" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_task_killed_half_way_leaves_no_half_a_file(
    generated: Path, small: TrafficParameters, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    program = (
        "import sys, pathlib\n"
        "from linearroad import files; from linearroad.generation import tasks\n"
        "from linearroad.generation.parameters import TrafficParameters\n"
        "slow = tasks.note_progress\n"
        "def stop(path, rows):\n"
        "    slow(path, rows)\n"
        "    print('half way', flush=True)\n"
        "    sys.stdin.read()\n"
        "tasks.note_progress = stop\n"
        f"tasks.simulate_expressway(pathlib.Path({str(out)!r}), {small!r}, 0)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        assert process.stdout.readline() == "half way\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    layout = Layout(out)
    assert not layout.trace(0).exists()
    assert list(layout.work.glob(".*.tmp"))
    # The first file that generate writes, before it starts tasks.
    manifest = {"version": 1, "parameters": small.as_dict(), "complete": False}
    layout.manifest.write_text(json.dumps(manifest))
    generate(small, out)
    assert checksums(out) == checksums(generated)
    assert sorted(path.name for path in (out / "traffic").iterdir()) == [
        f"xway-{xway:05d}.parquet" for xway in range(3)
    ]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"

    def write_half() -> None:
        with table_writer(path, ("a",), "parquet") as writer:
            writer.write(np.zeros((1, 5), np.int32))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert list(tmp_path.iterdir()) == []
    with whole(path) as temporary:
        temporary.write_text("all")
    assert path.read_text() == "all"


def test_flat_files_say_the_same_and_merge_by_time(
    generated: Path, small: TrafficParameters, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    generate(replace(small, format="csv"), out, merged=True)
    total = 0
    for xway in range(3):
        flat = np.loadtxt(Layout(out).traffic(xway, "csv"), np.int64, delimiter=",")
        rows = columns(generated, xway)
        np.testing.assert_array_equal(flat.T, np.stack([rows[name] for name in TRAFFIC_COLUMNS]))
        total += len(flat)
    merged = np.loadtxt(Layout(out).merged, np.int64, delimiter=",")
    assert len(merged) == total
    assert np.all(np.diff(merged[:, 1]) >= 0)


def test_a_later_beginning_is_a_cut_from_the_same_traffic(
    generated: Path, small: TrafficParameters, tmp_path: Path
) -> None:
    generate(replace(small, from_minute=5, minutes=3), tmp_path / "out")
    total = 0
    seen: set[int] = set()
    for xway in range(3):
        whole_run, cut = columns(generated, xway), columns(tmp_path / "out", xway)
        late = (whole_run["time"] >= 300) & (whole_run["type"] == 0)
        reports = cut["type"] == 0
        names = ("time", "pos", "spd", "lane", "dir", "seg")
        expected = np.stack([whole_run[name][late] for name in names], axis=1)
        expected[:, 0] -= 300
        found = np.stack([cut[name][reports] for name in names], axis=1)
        # Vehicles are renumbered, so the reports of a second come in another order.
        np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(expected, axis=0))
        assert len(found) == len(expected)
        seen |= set(cut["vid"][reports].tolist())
        total += int(reports.sum())
    assert seen == set(range(len(seen)))
    assert total == read_manifest(tmp_path / "out")["totals"]["reports"]


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


@pytest.mark.usefixtures("no_java")
def test_without_java_one_sentence_names_the_packages() -> None:
    with pytest.raises(InputError, match=r"Debian.*Fedora.*macOS"):
        sparks.require_spark()


def test_a_task_that_fails_says_why_in_one_sentence(spark_session: object) -> None:
    def fail(item: int) -> int:
        raise ValueError(f"item {item} is bad")

    with pytest.raises(XStreamError, match="item 3 is bad"):
        sparks.run_tasks(spark_session, fail, [3])


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom linearroad.cli import app\nfrom typer.testing import CliRunner\n"
        "print(CliRunner().invoke(app, ['generate', '--help']).stdout)\n"
        "print('heavy:', *({'numba', 'pyspark', 'plotly', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "--from-minute" in done.stdout
    assert done.stdout.rstrip().endswith("heavy:")
