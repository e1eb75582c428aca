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
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos.subjects import CHECKPOINTS, Subject, quietly
from xstream import run as engine_run
from xstream.recovery.generations import has_checkpoint

__all__ = ["Tally", "kill_runs", "reference_of"]

#: How long the core runs before it looks whether a checkpoint is due: not long, so that short runs
#: take many.
LOOK_UP_NS = 5_000_000
#: Half of the kills wait for the next checkpoint, and then for this share of a random time.
SOON = 0.25
#: The most kills of one run.
MOST_KILLS = 4
#: An attempt hangs if it has used so much processor time, or has been asleep for so long.
PATIENCE_S = 120.0
#: More than this between two looks counts as this: then the machine has kept everybody waiting.
LONGEST_LOOK_S = 0.1


@dataclass
class Tally:
    """The kills that hit a running process, and the seeds of the runs with a wrong output.

    `resumed` are the kills after which a run went on from a checkpoint.
    """

    kills: int = 0
    resumed: int = 0
    runs: int = 0
    wrong: list[str] = field(default_factory=list)


class Patience:
    """Whether a process hangs: on a machine that is busy with other things it only takes longer."""

    def __init__(self, process: int) -> None:
        self._path = Path(f"/proc/{process}/stat")
        self._asleep_s, self._looked = 0.0, time.monotonic()

    def is_over(self) -> bool:
        """Look at the process again."""
        fields = self._path.read_text().rpartition(")")[2].split()
        before, self._looked = self._looked, time.monotonic()
        if fields[0] in "SD":
            self._asleep_s += min(self._looked - before, LONGEST_LOOK_S)
        used_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return max(used_s, self._asleep_s) > PATIENCE_S


def in_child(
    work: Callable[[], None],
    kill_after_s: float | None,
    may_fail: bool = False,
    since: Callable[[], bool] = lambda: True,
) -> bool:
    """Do something in a fork; returns whether it came to its end before it was killed.

    The time to the kill counts from the moment at which `since` is true.
    """
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            engine_run.LOOK_UP_NS = LOOK_UP_NS
            with quietly():
                work()
            code = 0
        except BaseException:
            if not may_fail:
                traceback.print_exc()
        finally:
            os._exit(code)
    begin, counts = time.monotonic(), False
    patience = Patience(child)
    while not patience.is_over():
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            failed = os.waitstatus_to_exitcode(status) != 0
            if failed and not may_fail:
                raise AssertionError("a run has failed; its error is above")
            return not failed
        if not counts and since():
            begin, counts = time.monotonic(), True
        if counts and kill_after_s is not None and time.monotonic() - begin >= kill_after_s:
            break
        time.sleep(0.002 if kill_after_s is None else min(0.002, kill_after_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if kill_after_s is None:
        raise AssertionError(f"a run hangs: it was busy or asleep for {PATIENCE_S:.0f} s")
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


def _at_once() -> bool:
    return True


def _latest(folder: Path) -> int:
    """The number of the latest checkpoint of a run; 0 if there is none."""
    names = (path.name for path in (folder / CHECKPOINTS).glob("checkpoint-*"))
    return max((int(name.rpartition("-")[2]) for name in names), default=0)


def _newer(folder: Path, number: int) -> bool:
    """Whether a run has taken a checkpoint after this one."""
    return _latest(folder) > number


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
            since = partial(_newer, folder, _latest(folder)) if chance.random() < 0.5 else _at_once
            if since is not _at_once and after is not None:
                after *= SOON
            ended = in_child(
                partial(subject.run, folder, tries > 0), after, since=since if after else _at_once
            )
            tries += 1
            tally.kills += not ended
            tally.resumed += not ended and has_checkpoint(folder / CHECKPOINTS)
        if subject.output(folder) != wanted:
            tally.wrong.append(case)
            print(f"WRONG: {case}, kept in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
        tally.runs += 1
    return tally
