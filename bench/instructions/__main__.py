"""`python -m bench.instructions`: count, compare with the stored counts, and store new ones."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from bench.instructions import LIMIT, ROOT, counted, differences, store, stored, toolchain


def main() -> int:
    """Print the counts; the exit code is 1 if one is more than 3 % above the stored one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="keep the counts as the right ones")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--root", type=Path, default=ROOT, help="count another source tree")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: no instructions were counted", file=sys.stderr)
        return 2
    chain, counts = toolchain(), counted(options.root)
    if options.json:
        print(json.dumps({"toolchain": chain, "counts": counts}, indent=2))
        return 0
    if options.store:
        store(chain, counts)
    before = stored(chain)
    for path, count in counts.items():
        change = f"{100 * (count / before[path] - 1):+.2f} %" if before else ""
        print(f"{path:10} {count:>14,} instructions  {change}")
    if before is None:
        print(f"No counts are stored for {chain}: nothing is compared. --store keeps these.")
        return 0
    found = differences(before, counts)
    for sentence in found:
        print(sentence)
    if not found:
        print(f"No path takes more than {LIMIT:.0%} more instructions than the stored counts.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
