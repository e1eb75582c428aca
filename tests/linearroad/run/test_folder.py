"""The folder of a run: one run at a time, no earlier results, no symlinks followed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from linearroad.output.writers import RESULTS
from linearroad.run.job import RunOptions, run
from linearroad.tables.history import History

from xstream.console.folder import result_folder
from xstream.errors import InputError

ROW = "0,{t},1,50,0,1,0,1,6000" + ",-1" * 6 + "\n"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("".join(ROW.format(t=t) for t in range(3)))
    return path


def test_a_run_removes_what_was_said_of_earlier_answers(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in (*RESULTS, ".summary.json.0123.tmp", "notes.txt"):
        (out / name).write_text("of an earlier run")
    run(rows, out, History(), RunOptions())
    written = {"output.csv", "rejects.csv", "summary.json", "timeline.csv"}
    assert {path.name for path in out.iterdir()} == written | {"notes.txt"}
    assert all((out / name).read_text() != "of an earlier run" for name in written)


def test_what_a_validation_writes_is_known_here() -> None:
    from linearroad.validation.job import DIFFERENCES, VALIDATION

    assert {DIFFERENCES, VALIDATION, "report.html"} < set(RESULTS)


def test_a_second_run_into_a_folder_is_refused_and_changes_nothing(
    rows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with result_folder(out, rows, RESULTS):
        (out / "output.csv").write_text("of the run that is under way")
        with pytest.raises(InputError, match=f"another run is writing to {out}"):
            run(rows, out, History(), RunOptions())
        assert [path.name for path in out.iterdir()] == ["output.csv"]
    run(rows, out, History(), RunOptions())


def test_a_run_that_was_killed_leaves_no_lock(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    program = (
        "import sys, time; from pathlib import Path\n"
        "from xstream.console.folder import result_folder\n"
        "with result_folder(Path(sys.argv[1]), Path('rows'), ()):\n"
        "    print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(out)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(InputError, match="another run"):
            run(rows, out, History(), RunOptions())
        holder.send_signal(signal.SIGKILL)
    run(rows, out, History(), RunOptions())
    assert (out / "summary.json").exists()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_no_symlink_is_followed(rows: Path, tmp_path: Path, form: str) -> None:
    """Symlinks that exist before the run, and those that are created during it."""
    out, others = tmp_path / "out", tmp_path / "others"
    out.mkdir()
    others.write_text("somebody else's")
    for name in RESULTS:
        (out / name).symlink_to(others)

    def put_back(_: object) -> None:
        path = out / "summary.json"
        if not path.is_symlink():
            os.symlink(others, path)

    run(rows, out, History(), RunOptions(form=form), put_back)
    assert others.read_text() == "somebody else's"
    assert not any(path.is_symlink() for path in out.iterdir())


def test_an_input_that_the_run_would_remove_is_refused(rows: Path, tmp_path: Path) -> None:
    place = rows.rename(tmp_path / "output.csv")
    with pytest.raises(InputError, match="would be overwritten"):
        run(place, tmp_path, History(), RunOptions())
    assert place.read_text().count("\n") == 3
