"""The page of `compare`: the table of systems, their curves, and every probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from linearroad.validation.answers import LIMITS_S, TYPES
from xstream.report import plots
from xstream.report.page import document, paragraphs, plots_html, section, table_html, write
from xstream.report.profile_page import size
from xstream.report.sections import plain_section

__all__ = ["page_data", "write_page"]

Comparison = dict[str, Any]
Probe = dict[str, Any]
System = dict[str, Any]
LIMIT_S = dict(zip(TYPES, LIMITS_S, strict=True))
STRICT_S = min(LIMITS_S)
STRICT = [kind for kind in TYPES if LIMIT_S[kind] == STRICT_S]
#: The columns of the paper's Tables 7 and 8, and the kinds of answers in each.
ASKED = {"toll or alert": TYPES[:2], "balance": TYPES[2:3], "expenditure": TYPES[3:4],
         "travel time": TYPES[4:]}  # fmt: skip
Table = tuple[list[str], list[list[str]]]


def _l(rated: float) -> str:
    return f"{rated:,g}" if rated else "none"


def _worst(probe: Probe, kinds: Sequence[str]) -> float | None:
    """The longest response time of some kinds of answers; None if there were none."""
    found = [probe["response_s"][kind]["worst"] for kind in kinds if kind in probe["response_s"]]
    return max(found, default=None)


def _best(system: System) -> Probe | None:
    found = (p for p in _whole(system) if p["passed"] and p["rated"] == system["l"])
    return next(found, None)


def _whole(system: System) -> list[Probe]:
    """The probes of full length, by L."""
    probes = (probe for probe in system["probes"] if not probe["screening"])
    return sorted(probes, key=lambda probe: float(probe["rated"]))


def _ranked(comparison: Comparison) -> list[System]:
    return sorted(comparison["systems"], key=lambda system: -system["l"])


def _busy(probe: Probe) -> str:
    return f"{probe['cpu_s'] / probe['wall_s']:.2f}" if probe["wall_s"] else "-"


def _system_table(comparison: Comparison) -> Table:
    heads = ["system", "L", "times", "leaves out", "worst answer, s", "processors", "memory",
             "start, s", "answers"]  # fmt: skip
    ours = next((s["l"] for s in comparison["systems"] if s["name"] == "xstream"), 0.0)
    rows = []
    for system in _ranked(comparison):
        if system["missing"]:
            rows.append([system["title"], "missing", *["-"] * 6, system["missing"]])
            continue
        best, behind = _best(system), ours / system["l"] if system["l"] else 0.0
        figures = ["-"] * 4
        if best is not None:
            figures = [f"{best['worst_s']:.3f}", _busy(best), size(best["peak_memory_bytes"]),
                       f"{best['start_s']:.1f}"]  # fmt: skip
        right = system["validated"] or "equal to those of xstream, not validated"
        rows.append([
            system["title"], _l(system["l"]), f"{behind:,.3g}" if behind else "-",
            ", ".join(system["leaves_out"]) or "nothing", *figures, right if system["l"] else "-",
        ])  # fmt: skip
    return heads, rows


def _probe_table(comparison: Comparison) -> Table:
    """Worst response times by L, as in the paper's Tables 7 and 8."""
    limits = (f"{name} (limit\u00a0{LIMIT_S[of[0]]}\u00a0s)" for name, of in ASKED.items())
    heads = [
        "system",
        "L",
        "minutes",
        *limits,
        "verdict",
        "rows",
        "processors",
        "memory",
        "start, s",
    ]
    rows = []
    for system in _ranked(comparison):
        order = sorted(system["probes"], key=lambda p: (p["screening"], float(p["rated"])))
        for probe in order:
            worst = (_worst(probe, of) for of in ASKED.values())
            rows.append([
                system["name"], _l(probe["rated"]), str(probe["minutes"]),
                *("-" if seconds is None else f"{seconds:,.3f}" for seconds in worst),
                "passed" if probe["passed"] else f"not passed: {probe['why']}",
                f"{probe['rows']:,}", _busy(probe), size(probe["peak_memory_bytes"]),
                f"{probe['start_s']:.1f}",
            ])  # fmt: skip
    return heads, rows


def _points(system: System, value: Any) -> list[tuple[float, float, float]]:
    found = ((probe["rated"], value(probe)) for probe in _whole(system))
    return [(rated, y, 0.0) for rated, y in found if y]


def _curves(comparison: Comparison, value: Any, unit: str, log_y: bool, limit: bool) -> Any:
    series = {s["name"]: points for s in _ranked(comparison) if (points := _points(s, value))}
    drawn = plots.lines("", "L", unit, series, log_x=True, log_y=log_y)
    if limit:
        drawn.add_hline(y=STRICT_S, line={"dash": "dash", "color": plots.RED})
    return plots.with_legend_room(drawn.update_layout(showlegend=True))


def _plots(comparison: Comparison) -> Iterator[tuple[str, str, Any]]:
    """Heading, text and figure of every plot that has data."""
    if not any(_points(system, lambda p: p["rows"]) for system in comparison["systems"]):
        return
    words = (
        "The slowest toll, alert or balance of each probe, in stream seconds, on logarithmic "
        f"scales. The dashed line is the limit of {STRICT_S} s; a late answer ends a probe."
    )
    yield (
        "Response time against L",
        words,
        _curves(comparison, lambda p: _worst(p, STRICT), "worst response time, s", True, True),
    )
    yield "Processors", "CPU seconds of the system per second, without those of the driver.", (
        _curves(
            comparison, lambda p: p["cpu_s"] / p["wall_s"] if p["wall_s"] else 0, "processors",
            False, False,
        )
    )  # fmt: skip
    yield (
        "Memory",
        "The most that the processes of the system took, shared pages counted once.",
        (_curves(comparison, lambda p: p["peak_memory_bytes"] / 1e9, "memory, GB", True, False)),
    )


def _meaning(comparison: Comparison) -> str:
    begin, minutes = comparison["from_minute"], comparison["minutes"]
    pace = "" if comparison["speed"] == 1 else f" at {comparison['speed']:g} times the pace"
    short = comparison["screen_minutes"]
    screening = f" Shorter ones, of {short} minutes, found out where to begin." if short else ""
    return (
        f"Each system was driven over the network on the same machine with minutes {begin} to "
        f"{begin + minutes} of the three-hour stream{pace}, from an empty state, and its answers "
        "were compared with the right ones. L is the largest number of expressways for which "
        "every answer was right and in time; half an expressway is one direction of one. "
        f"These are probes, not ratings by full streams.{screening}\n\n"
        f"{comparison['base']['expressways']} expressways were generated, and copies of them share "
        "their history. The driver runs on the same machine and takes its share of it. Processors "
        "and memory are those of the system alone. `times` is how many times the L of xstream "
        "is ahead."
    )


def _origin(comparison: Comparison) -> dict[str, Any]:
    known = comparison["machine"]
    return {**known, "processor": known["cpu"], "xstream": comparison["version"]}


TITLE = "Linear Road on several systems"


def page_data(comparison: Comparison) -> dict[str, Any]:
    """The page as plain data for `xstream report` (`xstream.report.sections`)."""
    found = [
        plain_section("", _meaning(comparison), verdict=comparison["sentence"]),
        plain_section("The largest L", table=_system_table(comparison)),
        plain_section("Worst response times", table=_probe_table(comparison)),
    ]
    for title, words, figure in _plots(comparison):
        found.append(plain_section(title, words, plots=[figure]))
    return {"title": TITLE, "machine": _origin(comparison), "sections": found}


def write_page(path: Path, comparison: Comparison) -> None:
    """Write a self-contained HTML file."""
    known = comparison["machine"]
    where = f"{known['cores']} cores of {known['cpu']}, {size(known['memory_bytes'])}"
    drawn = [
        section(title, paragraphs(words), plots_html([figure], number))
        for number, (title, words, figure) in enumerate(_plots(comparison))
    ]
    body = [
        f'<p class="verdict">{escape(comparison["sentence"])}</p>',
        section("The largest L", table_html(*_system_table(comparison))),
        paragraphs(_meaning(comparison)),
        *drawn,
        section(
            "Worst response times, probe by probe",
            paragraphs("In stream seconds after the report or request that asked."),
            table_html(*_probe_table(comparison)),
        ),
    ]
    write(path, document(TITLE, body, _origin(comparison), where))
