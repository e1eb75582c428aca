"""How far the four rule sets disagree: `python -m bench.linearroad_rules TRAFFIC [--minutes N]`.

Runs the same traffic under each rule set and prints the table of docs/linear-road-thesis.md.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import Counter
from pathlib import Path

from linearroad.output.summary import RunOptions
from linearroad.rules import RULES
from linearroad.run.job import run
from linearroad.tables.history import History

HEADINGS = (
    "rules", "notifications", "with a toll", "sum of tolls", "vehicles notified", "alerts",
    "vehicles alerted", "sum of balances",
)  # fmt: skip


def figures(output: Path, rules: str) -> list[int]:
    """Counts and sums over the answers of a run."""
    found: Counter[str] = Counter()
    notified, alerted = set(), set()
    with output.open() as file:
        for row in csv.reader(file):
            if rules == "thesis":
                kind, who, amount = row[1], row[2], int(row[3])
            else:
                kind, who = row[0], row[3] if row[0] == "1" else row[1]
                amount = int(row[5]) if kind in "02" else 0
            if kind == "0":
                found["notifications"] += 1
                found["tolled"] += amount > 0
                found["tolls"] += amount
                notified.add(who)
            elif kind == "1":
                found["alerts"] += 1
                alerted.add(who)
            elif kind == "2":
                found["balances"] += amount
    return [
        found["notifications"], found["tolled"], found["tolls"], len(notified), found["alerts"],
        len(alerted), found["balances"],
    ]  # fmt: skip


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traffic", type=Path, help="a flat or Parquet file, or a directory")
    parser.add_argument("--minutes", type=int, default=None)
    options = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |\n|---|{'---:|' * (len(HEADINGS) - 1)}")
    for rules in RULES:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            run(options.traffic, out, History(), RunOptions(rules, minutes=options.minutes))
            told = (f"{number:,}" for number in figures(out / "output.csv", rules))
            print(f"| {rules} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
