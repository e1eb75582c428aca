"""Every step of writing a checkpoint goes wrong in turn: each write, fsync and rename.

It fails, is cut short, or is the last one of a process that is killed or of a machine whose power
is cut. `faults.c` stands in front of the C library for that. The run then goes on, or is resumed,
and its output is compared.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["FAULTS", "fault_every_step"]

SOURCE = Path(__file__).with_name("faults.c")
FAULTS = {"fails": 1, "short": 2, "killed": 3, "power cut": 4, "power cut, name lost": 5}
#: Steps of a run at which something goes wrong: those of its first few checkpoints.
STEPS = 24


def built(folder: Path) -> Path:
    """The shim as a library."""
    library = folder / "faults.so"
    command = [
        os.environ.get("CC", "cc"),
        "-O1",
        "-shared",
        "-fPIC",
        str(SOURCE),
        "-o",
        str(library),
    ]
    subprocess.run([*command, "-ldl"], check=True)
    return library


def fault_every_step(
    scratch: Path, until: float, steps: int = STEPS, without_fsync: bool = False
) -> tuple[str, bool]:
    """Try every fault at every step; a sentence, and whether any run was lost."""
    scratch.mkdir(parents=True)
    library = built(scratch)
    seconds = max(until - time.monotonic(), 30.0)
    command = [sys.executable, "-m", "tests.chaos.faults", str(scratch), str(library), str(steps),
               str(seconds), str(int(without_fsync))]  # fmt: skip
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
    return said[-1] if said else "no faults were tried", done.returncode != 0


def main() -> int:
    """In the process with the shim: every fault at every step."""
    from tests.chaos.kills import in_child, reference_of
    from tests.chaos.subjects import run_signal, signal_subject

    scratch, library, steps, seconds, without_fsync = (
        Path(sys.argv[1]), ctypes.CDLL(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]),
        int(sys.argv[5]),
    )  # fmt: skip
    library.faults_steps.restype = ctypes.c_long
    subject = signal_subject()
    wanted, _ = reference_of(subject, scratch / "undisturbed")
    until, tried, wrong, missed = time.monotonic() + seconds, 0, [], 0
    for step in range(1, steps + 1):
        for name, mode in FAULTS.items():
            if time.monotonic() > until:
                break
            folder = scratch / f"{name} {step}"
            folder.mkdir()

            def disturbed(folder: Path = folder, step: int = step, mode: int = mode) -> None:
                library.faults_arm(ctypes.c_long(step), mode, without_fsync)
                run_signal(folder, False)

            what = "the output differs"
            try:
                ended = in_child(disturbed, None, may_fail=True)
                if not ended:
                    in_child(lambda folder=folder: run_signal(folder, True), None)  # type: ignore[misc]
                same = subject.output(folder) == wanted
            except (AssertionError, OSError) as error:
                same, what = False, str(error)
            tried += 1
            missed += library.faults_steps() < step  # the run ended before the fault
            if not same:
                wrong.append(f"{name} at step {step} ({what})")
            shutil.rmtree(folder, ignore_errors=True)
    listed = f": {', '.join(wrong[:20])}" if wrong else ""
    print(
        f"faults of the disk: {tried} tried of {steps * len(FAULTS)} at {steps} steps, {missed} "
        f"not reached, {len(wrong)} wrong{listed}"
    )
    return int(bool(wrong) or missed > 0 or tried < steps * len(FAULTS))


if __name__ == "__main__":
    sys.exit(main())
