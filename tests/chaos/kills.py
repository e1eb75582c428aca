"""kill -9 at random moments, again and again, until the run comes to its end; then its output is
compared with that of a run that nobody has disturbed.

Every attempt is a fork of this process, which has loaded and compiled everything.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.subjects import Subject, quietly

__all__ = ["Tally", "kill_runs", "reference_of"]

#: The most kills of one run.
MOST_KILLS = 4
PATIENCE_S = 120.0


@dataclass
class Tally:
    """The kills that hit a running process, and the seeds of the runs with a wrong output."""

    kills: int = 0
    runs: int = 0
    wrong: list[str] = field(default_factory=list)


def in_child(work: Callable[[], None], kill_after_s: float | None, may_fail: bool = False) -> bool:
    """Do something in a fork; returns whether it came to its end before it was killed."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        code = 1
        try:
            with quietly():
                work()
            code = 0
        except BaseException:
            if not may_fail:
                traceback.print_exc()
        finally:
            os._exit(code)
    begin = time.monotonic()
    limit_s = PATIENCE_S if kill_after_s is None else kill_after_s
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            failed = os.waitstatus_to_exitcode(status) != 0
            if failed and not may_fail:
                raise AssertionError("a run has failed; its error is above")
            return not failed
        if time.monotonic() - begin >= limit_s:
            break
        time.sleep(min(0.002, limit_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if kill_after_s is None:
        raise AssertionError(f"a run has not ended after {PATIENCE_S:.0f} s")
    return False


def reference_of(subject: Subject, folder: Path) -> tuple[Any, float]:
    """The output of an undisturbed run, and how long it takes."""
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True)
    with quietly():
        subject.run(folder / "first", False)  # here, so that all forks have the compiled code
    begin = time.monotonic()
    in_child(lambda: subject.run(folder / "second", False), None)
    took = time.monotonic() - begin
    wanted = subject.output(folder / "first")
    assert subject.output(folder / "second") == wanted, "two undisturbed runs differ"
    return wanted, took


def kill_runs(subject: Subject, scratch: Path, kills: int, seed: int, until: float) -> Tally:
    """Kill runs of a subject until so many kills have hit, or the time is over."""
    wanted, took = reference_of(subject, scratch / "undisturbed")
    tally = Tally()
    while tally.kills < kills and time.monotonic() < until:
        case = f"{seed} {subject.name} {tally.runs}"
        chance = random.Random(case)
        folder = scratch / f"run {tally.runs}"
        folder.mkdir(parents=True)
        ended, tries = False, 0
        while not ended:
            after = chance.uniform(0.0, 1.1 * took) if tries < MOST_KILLS else None
            ended = in_child(
                lambda folder=folder, resume=tries > 0: subject.run(folder, resume), after
            )  # type: ignore[misc]
            tries += 1
            tally.kills += not ended
        if subject.output(folder) != wanted:
            tally.wrong.append(case)
            print(f"WRONG: {case}, kept in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        tally.runs += 1
    return tally
