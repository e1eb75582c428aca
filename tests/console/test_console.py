"""What all commands share does what it says, on terminals and elsewhere."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from xstream.console import Progress, check_output_directory, check_output_file, within
from xstream.errors import InputError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(steps: int, seconds_each: float, total: float | None) -> list[str]:
    clock, stream = Clock(), io.StringIO()
    with Progress("work", total, "step", stream=stream, clock=clock) as progress:
        for step in range(1, steps + 1):
            clock.now += seconds_each
            progress.update(step)
    return stream.getvalue().splitlines()


def test_progress_of_a_short_command_is_not_shown() -> None:
    assert lines(steps=10, seconds_each=0.1, total=10) == []


def test_progress_says_the_share_and_the_time_left_every_few_seconds() -> None:
    assert lines(steps=12, seconds_each=1.0, total=12) == [
        "work: step 2 of 12 (17 %), about 10 s left",
        "work: step 7 of 12 (58 %), about 5 s left",
        "work: step 12 of 12 (100 %), about 0 s left",
    ]


def test_progress_without_a_total_counts() -> None:
    assert lines(steps=2, seconds_each=1.5, total=None) == ["work: step 2"]


def test_what_was_done_before_does_not_count_as_pace() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress("work", 100, stream=stream, clock=clock)
    progress.resume_at(90)
    clock.now = 4.0
    progress.update(92)
    assert stream.getvalue() == "work: 92 of 100 (92 %), about 16 s left\n"


def test_a_part_of_the_work_is_counted_at_its_own_pace() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress("work", unit="preparation", stream=stream, clock=clock) as progress:
        clock.now = 10.0
        progress.update(1)
        progress.begin(4, "trial")
        clock.now = 16.0
        progress.update(2, "the second")
    assert stream.getvalue().splitlines() == [
        "work: preparation 1",
        "work: trial 2 of 4 (50 %), about 6 s left, the second",
    ]


def test_silent_progress_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress.silent()
    progress.begin(2, "trial")
    progress.advance()
    assert capsys.readouterr().err == ""


def test_a_bar_is_drawn_by_updates_only() -> None:
    """A thread that draws would disturb what is measured."""
    clock, stream = Clock(), Terminal()
    before = threading.active_count()
    with Progress("work", 10, stream=stream, clock=clock) as progress:
        clock.now = 5.0
        progress.update(4)
        assert threading.active_count() == before


def test_a_terminal_gets_a_bar_that_is_removed() -> None:
    clock, stream = Clock(), Terminal()
    with Progress("work", 10, stream=stream, clock=clock) as progress:
        clock.now = 5.0
        progress.update(4)
    assert "4 of 10 (40 %)" in stream.getvalue()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.5, 11])
def test_numbers_out_of_range_are_refused_with_the_range(value: float) -> None:
    param = cast(Any, SimpleNamespace(opts=["--seconds"]))
    assert within(1, 10)(param, 5) == 5
    assert within(1, 10)(param, None) is None
    with pytest.raises(InputError, match=r"--seconds must be from 1 to 10, not"):
        within(1, 10)(param, value)


@pytest.mark.parametrize("name", ["/proc/nothing/here", "/dev/null/here"])
def test_outputs_that_cannot_be_written_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        check_output_file(Path(name))
    with pytest.raises(InputError, match="cannot be written"):
        check_output_directory(Path(name))


def test_a_directory_is_no_output_file_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a directory"):
        check_output_file(tmp_path)
    check_output_file(tmp_path / "new" / "page.html")
    check_output_directory(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


COMMAND = """
import time
from xstream.console import exit_on_interrupt
with exit_on_interrupt():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was kept") from None
"""


def interrupted(command: str, number: int, sigint: Any = signal.default_int_handler) -> Any:
    """The exit code and what was said, after a signal."""
    with subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell that starts tests in the background leaves SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, sigint),
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        began = time.monotonic()
        os.kill(child.pid, number)
        _, errors = child.communicate(timeout=30)
        assert time.monotonic() - began < 10
    return child.returncode, errors.strip()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_with_its_code_and_one_sentence(number: int, code: int) -> None:
    assert interrupted(COMMAND, number) == (code, "xstream: interrupted: nothing was kept")


def test_sigterm_ends_a_command_that_a_shell_started_in_the_background() -> None:
    found = interrupted(COMMAND, signal.SIGTERM, sigint=signal.SIG_IGN)
    assert found == (143, "xstream: interrupted: nothing was kept")


LOST = """
import time
from xstream.console import exit_on_interrupt, interrupted_with
class Slow:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(0.5)  # Python cannot raise out of here
with exit_on_interrupt(), interrupted_with("nothing was kept"):
    Slow()
    time.sleep(60)
"""


NOTICED = """
import time
from xstream.console import exit_on_interrupt
class Slow:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(60)
try:
    with exit_on_interrupt():
        Slow()
        raise KeyboardInterrupt("noticed all the same")
finally:
    time.sleep(0.3)
"""


def test_an_interrupt_that_was_lost_and_noticed_strikes_once() -> None:
    assert interrupted(NOTICED, signal.SIGINT) == (
        130,
        "xstream: interrupted: noticed all the same",
    )


def test_an_interrupt_that_strikes_in_a_finaliser_is_not_lost() -> None:
    assert interrupted(LOST, signal.SIGINT) == (130, "xstream: interrupted: nothing was kept")
