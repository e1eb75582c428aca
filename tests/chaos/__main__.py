"""`python -m tests.chaos`: kills, faults of the disk, and damaged files, within a time limit."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.damage import damaged_files
from tests.chaos.faults import fault_every_step
from tests.chaos.kills import kill_runs
from tests.chaos.subjects import linear_road_subjects, signal_subject


def generated(folder: Path) -> Path:
    """Two expressways of traffic with history."""
    code = "import sys; from xstream.cli import main; sys.exit(main())"
    options = ["--expressways", "2", "--minutes", "20", "--history", "--out", str(folder)]
    command = [sys.executable, "-c", code, "linearroad", "generate", *options]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="time limit of all parts")
    parser.add_argument(
        "--kills", type=int, default=200, help="kills that must hit a running process"
    )
    parser.add_argument("--flips", type=int, default=10_000, help="bits to flip in a checkpoint")
    parser.add_argument("--seed", type=int, default=18, help="of all random choices")
    parser.add_argument("--traffic", type=Path, help="generated traffic with history")
    parser.add_argument("--only", help="one subject: signal, one file, several files, ...")
    asked = parser.parse_args()
    begin = time.monotonic()
    until, failed = begin + asked.seconds, False
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        scratch = Path(name)
        traffic = asked.traffic or generated(scratch / "traffic")
        subjects = [signal_subject(), *linear_road_subjects(traffic, scratch)]
        chosen = [subject for subject in subjects if asked.only in (None, subject.name)]
        for place, subject in enumerate(chosen):
            left = begin + 0.75 * asked.seconds - time.monotonic()
            share = time.monotonic() + left / (len(chosen) - place)
            kills = -(-asked.kills // len(chosen))
            tally = kill_runs(subject, scratch / subject.name, kills, asked.seed, share)
            print(f"{subject.name}: {tally.kills} kills of {kills} in {tally.runs} runs, "
                  f"{tally.resumed} resumed from a checkpoint, {len(tally.wrong)} wrong outputs",
                  flush=True)  # fmt: skip
            failed |= bool(tally.wrong) or tally.kills < kills or 3 * tally.resumed < kills
        if asked.only is None:
            for sentence, wrong in (
                fault_every_step(scratch / "faults", until),
                damaged_files(scratch / "damage", asked.flips, asked.seed),
            ):
                print(sentence, flush=True)
                failed |= wrong
    print(f"{'FAILED' if failed else 'passed'} in {time.monotonic() - begin:.0f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
