"""Draws the delays of YABench's experiments as box plots, beside the published ones.

    python -m bench.yabench_boxes DIR [DIR ...] --published published-results.tar.xz > delays.svg

DIR are folders of `xstream yabench run`. The boxes hold all windows of all runs but the last one,
which the end of the input closes. Whiskers end at the 5th and 95th percentile.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from yabench.benchmark import outcomes
from yabench.published import Reference, read_published

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 150, 44, 58, 13
LEAST_MS, MOST_MS = 1.0, 1e5
COLORS = ("#2f6db5", "#c8702a", "#3d8b63", "#8a5fb0", "#9a7d1c")
REFERENCE = "#6b7785"

Tests = dict[str, dict[str, list[float]]]


def delays_of(folders: Sequence[Path]) -> tuple[Tests, dict[str, str]]:
    """The delays by test and engine, and the name of the published results of each test."""
    found: Tests = defaultdict(lambda: defaultdict(list))
    published = {}
    for folder in folders:
        for outcome in outcomes(folder):
            name = f"{outcome['test']}, {outcome['stations']:,}"
            published[name] = outcome["published"]
            windows = outcome.get("judged", {}).get("strict", {}).get("windows", [])
            delays = (window["delay_ms"] for window in windows[:-1])
            found[name][outcome["engine"]] += [each for each in delays if each is not None]
    return found, published


def _x(delay_ms: float) -> float:
    share = math.log(max(delay_ms, LEAST_MS) / LEAST_MS) / math.log(MOST_MS / LEAST_MS)
    return LEFT + (WIDTH - LEFT - RIGHT) * min(share, 1.0)


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def _box(values: Sequence[float], y: float, color: str) -> list[str]:
    low, first, middle, third, high = (_x(v) for v in np.percentile(values, [5, 25, 50, 75, 95]))
    return [
        f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{color}"/>',
        f'<rect x="{first:.1f}" y="{y - 4}" width="{max(third - first, 1):.1f}" height="8" '
        f'fill="{color}" fill-opacity="0.45" stroke="{color}"/>',
        f'<path d="M{middle:.1f} {y - 4}v8" stroke="{color}" stroke-width="2"/>',
    ]


def drawn(tests: Tests, references: Mapping[str, Sequence[Reference]]) -> str:
    """The picture."""
    engines = list(dict.fromkeys(engine for found in tests.values() for engine in found))
    colors = {engine: COLORS[place % len(COLORS)] for place, engine in enumerate(engines)}
    parts, y = [], float(TOP)
    for name, found in tests.items():
        rows = ROW * (len(found) + len(references.get(name, ())))
        parts.append(_text(8, y + rows / 2 + 4, name))
        for engine, values in found.items():
            if values:
                parts += _box(values, y + ROW / 2, colors[engine])
            y += ROW
        for each in references.get(name, ()):
            place = _x(each.delay_ms)
            parts.append(f'<circle cx="{place:.1f}" cy="{y + ROW / 2}" r="3" fill="{REFERENCE}"/>')
            parts.append(_text(place + 7, y + ROW / 2 + 4, each.engine, more=' class="s"'))
            y += ROW
        y += 6
        parts.append(f'<path class="g" d="M8 {y}H{WIDTH - RIGHT}"/>')
        y += 6
    grid = []
    for power in range(round(math.log10(MOST_MS)) + 1):
        at = _x(10.0**power)
        grid.append(f'<path class="g" d="M{at:.1f} {TOP - 8}V{y:.1f}"/>')
        grid.append(_text(at, TOP - 14, f"{10**power:,} ms", "middle", ' class="s"'))
    legend, x = [], float(LEFT)
    for engine in engines:
        legend.append(f'<rect x="{x}" y="12" width="12" height="8" fill="{colors[engine]}"/>')
        legend.append(_text(x + 17, 20, engine))
        x += 40 + 7.5 * len(engine)
    legend.append(f'<circle cx="{x + 6}" cy="16" r="3" fill="{REFERENCE}"/>')
    legend.append(_text(x + 17, 20, "published, mean"))
    style = (
        "<style>svg{background:#fff}text{font:12px sans-serif;fill:#1d2733}.s{font-size:10px;"
        "fill:#5a6673}.g{stroke:#dde3ea;fill:none}@media(prefers-color-scheme:dark){"
        "svg{background:#12181f}text{fill:#e4eaf1}.s{fill:#a9b4c0}.g{stroke:#323c48}}</style>"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" role="img" '
        'aria-label="Delays of windows by experiment and engine">'
    )
    return "\n".join([head, style, *grid, *parts, *legend, "</svg>"]) + "\n"


def main() -> None:
    """Read the folders and print the picture."""
    parser = argparse.ArgumentParser(description="Draw the delays of YABench's experiments.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--published", type=Path)
    given = parser.parse_args()
    tests, names = delays_of(given.folders)
    known = read_published(given.published) if given.published else {}
    print(drawn(tests, {test: known.get(name, []) for test, name in names.items()}), end="")


if __name__ == "__main__":
    main()
