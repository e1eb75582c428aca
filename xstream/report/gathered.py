"""`xstream report`: one page with experiments, profiles, benchmarks and ratings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from xstream.bench.report import machine
from xstream.errors import InputError
from xstream.report.experiment_page import experiment_parts, figure_rows, subtitle
from xstream.report.page import document, origin_html, section, table_html
from xstream.report.profile_page import profile_parts
from xstream.report.sections import page_parts

__all__ = ["KINDS", "gather", "gathered_page"]

#: Kinds of results, by the key of their JSON, in the order of the page.
KINDS = {
    "outcome": "experiment",
    "profile": "profile",
    "benchmark": "benchmark",
    "rating": "rating",
}


def gather(folder: Path) -> list[tuple[str, Path, dict[str, Any]]]:
    """Return kind, file and data of every JSON file in a folder that a command of xstream wrote."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a directory")
    found = []
    for path in sorted(folder.rglob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # not a result of ours
        kind = next((kind for kind in KINDS if isinstance(data, dict) and kind in data), None)
        if kind is not None:
            found.append((kind, path, data))
    order = list(KINDS)
    return sorted(found, key=lambda item: order.index(item[0]))


def gathered_page(folder: Path) -> str:
    """Return the page; a folder without results is an error."""
    found = gather(folder)
    if not found:
        raise InputError(
            f"{folder} contains no results: `xstream experiment --out`, `xstream profile --out` "
            "and `xstream bench --json` write them"
        )
    body: list[str] = []
    links: list[str] = []
    plot = 0
    for number, (kind, path, data) in enumerate(found):
        title, parts = _shown(kind, path, data, plot)
        anchor = f"part{number}"
        links.append(f'<a href="#{anchor}">{escape(title)}</a>')
        text = "".join(parts).replace("<h3", "<h4").replace("</h3>", "</h4>")
        text = text.replace("<h2", "<h3").replace("</h2>", "</h3>")
        body.append(section(title, text, anchor=anchor))
        plot += text.count('class="plot"')
    kinds = [kind for kind, _, _ in found]
    counted = [
        f"{kinds.count(kind)} {name}{'s' if kinds.count(kind) > 1 else ''}"
        for kind, name in KINDS.items()
        if kind in kinds
    ]
    navigation = f"<nav>{' '.join(links)}</nav>"
    body = [navigation, *body]
    return document("xstream: results", body, machine(), ", ".join(counted))


def _shown(kind: str, path: Path, data: dict[str, Any], plot: int) -> tuple[str, list[str]]:
    try:
        if kind == "outcome":
            found = data["outcome"]
            head = f'<p class="sub">{escape(subtitle(found))}</p>{origin_html(found["machine"])}'
            return found["title"], [head, *experiment_parts(found, plot)]
        if kind == "profile":
            found = data["profile"]
            head = origin_html(found["machine"])
            return f"Memory managers under {found['query']}", [head, *profile_parts(found, plot)]
        if kind == "benchmark":
            return f"Benchmark {data['benchmark']}", list(_benchmark(data))
        if "page" in data:
            return data["page"]["title"], page_parts(data["page"], plot)
        return f"Rating {path.stem}", list(_rating_without_page(data["rating"]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path} is not a valid result file: {error!r}") from error


def _benchmark(data: dict[str, Any]) -> Iterator[str]:
    yield origin_html(data["machine"])
    yield table_html(
        ("contender", "Msamples/s", "spread"),
        [
            (r["name"], f"{r['samples_per_second'] / 1e6:,.2f}", f"{r['spread']:.0%}")
            for r in data["results"]
        ],
    )
    yield table_html(("figure", "value", "", "asked", ""), figure_rows(data["figures"]))


def _rating_without_page(rating: Any) -> Iterator[str]:
    """Show a rating that an earlier version stored without a page."""
    if isinstance(rating, dict) and "sentence" in rating:
        yield f"<p><strong>{escape(str(rating['sentence']))}</strong></p>"
    rows = table_html(("", ""), _flat(rating))
    yield f"<details><summary>All stored data</summary>{rows}</details>"


def _flat(data: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten plain data to rows of names and values; nested names are joined."""
    if isinstance(data, dict):
        return [
            row
            for key, value in data.items()
            for row in _flat(value, f"{name}, {key}" if name else str(key))
        ]
    if isinstance(data, list) and any(isinstance(item, dict | list) for item in data):
        return [
            row for i, item in enumerate(data, 1) for row in _flat(item, f"{name}, {i}".strip(", "))
        ]
    text = ", ".join(map(str, data)) if isinstance(data, list) else str(data)
    return [(name, text)]
