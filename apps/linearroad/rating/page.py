"""The page of `rate`: the verdict, all steps, and published results of other systems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from linearroad.rating.steps import l_text
from linearroad.validation.answers import LIMITS_S, TYPES
from xstream.report import plots
from xstream.report.page import document, paragraphs, plots_html, section, table_html, write
from xstream.report.profile_page import size
from xstream.report.sections import plain_section

__all__ = ["page_data", "write_page"]

Rating = dict[str, Any]
Step = dict[str, Any]
Rows = Sequence[dict[str, float]]
Lines = dict[str, list[tuple[float, float, float]]]

MOST_POINTS = 400
MACHINE = ("cpu", "cores", "memory_bytes", "system", "python")
#: The columns of the paper's Table 8, and the kinds of answers in each.
ASKED = {"toll or alert": TYPES[:2], "balance": TYPES[2:3], "expenditure": TYPES[3:4],
         "travel time": TYPES[4:]}  # fmt: skip
LIMIT_S = dict(zip(TYPES, LIMITS_S, strict=True))
STRICT_S = min(LIMITS_S)
STRICT = [kind for kind in TYPES if LIMIT_S[kind] == STRICT_S]
RUNS = {"probe": "probes", "full": "full streams"}
PERCENTILES = {"p50": "50 %", "p99": "99 %", "p999": "99.9 %", "p9999": "99.99 %"}
PUBLISHED = (
    ("relational System X", "0.5", "one 3 GHz Pentium, 2 GB", "no"),
    ("SCSQ", "1.5", "one box", "no"),
    ("Aurora", "2.5", "one 3 GHz Pentium, 2 GB", "no"),
    ("SQLstream", "60", "4 cores (vendor's claim)", "no"),
    ("SEEP", "350", "50 machines", "no"),
    ("SCSQ-PLR", "512", "a cluster", "no"),
)


def _l(of: Rating | Step) -> str:
    """The L of a rating or step as text; the last expressway of a base may be half."""
    return l_text(_rated_l(of))


def _rated_l(of: Rating | Step) -> float:
    return float(of["expressways"] * of.get("share", 1.0))


def _rated(rating: Rating, step: Step | None = None) -> str:
    """An L as shown to users; that of a quick rating is always marked as quick."""
    of = step or rating
    named = f"L = {_l(of)}" if of["expressways"] else "none"
    if step is not None:
        named += f", {step['kind']}" + ("" if step["passed"] else ", not passed")
    return named + (" (quick)" if rating["quick"] else "")


def _worst(step: Step, kinds: Iterable[str], figure: str = "worst") -> float | None:
    """The worst figure of some kinds of answers; None if there were none."""
    found = (step["response_s"].get(kind, {}).get(figure) for kind in kinds)
    return max((value for value in found if value is not None), default=None)


def _share(cpu_s: float, wall_s: float, rating: Rating) -> float:
    return cpu_s / wall_s / rating["machine"]["cores"] if wall_s > 0 else 0.0


def _deciding(rating: Rating, steps: Iterable[Step]) -> Step | None:
    """The step that decides the rating, preferably a full stream; else the last one that ran."""
    ran = [step for step in steps if step["wall_s"] > 0]
    # A probe may have passed with more than a full stream did.
    passed = [s for s in ran if s["passed"] and s["expressways"] <= rating["expressways"]]
    best = max(passed, key=lambda s: (s["expressways"], s["kind"] == "full"), default=None)
    return best or (ran[-1] if ran else None)


def _verdict(rating: Rating) -> str:
    kind = "no" if not rating["passed"] else "quick" if rating["quick"] else ""
    word = " (quick)" if rating["quick"] else ""
    said = rating["sentence"] + ("" if rating["sentence"].startswith("quick") else word)
    told = f'<p class="verdict {kind}">{escape(said)}</p>'
    step, machine = _deciding(rating, rating["steps"]), rating["machine"]
    if step is None or not rating["passed"]:
        return told
    tiles = [
        (_l(rating), f"expressways{word}"),
        (f"{rating['speed']:g} ×", "the pace: the headroom"),
        (f"{_worst(step, STRICT) or 0:.3f} s", f"slowest toll, alert or balance, of {STRICT_S} s"),
        (f"{step['reports_per_second'] / 1e6:,.2f} M", "reports a second"),
        (size(step["peak_memory_bytes"]), f"of {size(machine['memory_bytes'])} memory"),
        (f"{_share(step['cpu_s'], step['wall_s'], rating):.0%}", f"of {machine['cores']} cores"),
    ]
    shown = "".join(f"<div><b>{escape(n)}</b>{escape(what)}</div>" for n, what in tiles)
    return f'{told}<div class="tiles">{shown}</div>'


def _who(rating: Rating) -> str:
    """What is rated."""
    if rating.get("master") is None:
        return "this one machine"
    return f"this cluster, in {rating['runs_at_once']} runs that start together,"


def _meaning(rating: Rating) -> list[str]:
    """Paragraphs about what the rating means and what it is based on."""
    base, speed, share = rating["base"], rating["speed"], rating.get("share", 1.0)
    digests = [step["digests"] for step in rating["steps"]]
    compared, different = (sum(d[name] for d in digests) for name in ("compared", "different"))
    generated = base["expressways"] * share
    copies = _rated_l(rating) - generated
    if rating.get("strict"):
        return _strict_meaning(rating, generated)
    return [
        f"L is the number of expressways whose cars {_who(rating)} answers at once: every toll, "
        "alert, balance, expenditure and travel time, "
        + ("right and within its limit." if rating["validated"] else "within its limit."),
        "The stream ran at the benchmark's own pace." if speed == 1 else
        f"The stream ran at {speed:g} times the pace, and limits are counted in its seconds: "
        f"what passes has {speed:g} times the headroom, and is never quoted as a larger L.",
        f"{l_text(generated)} expressways were generated: {base['minutes']:,} minutes, "
        f"{base['reports']:,} reports of {base['vehicles']:,} vehicles, {base['queries']:,} "
        "requests" + (f". The other {l_text(copies)} are copies of them." if copies > 0 else "."),
        "History is shared: a copy asks the history of the expressway that it is a copy of."
        if rating["history_is_shared"] else "Every expressway has a history of its own.",
        (f"The validator says of the originals' answers: “{rating['validated']}”."
         if rating["validated"] else "The originals' answers were not validated.")
        + f" Digests of the copies' compared with theirs: {compared:,}; different: {different:,}.",
        "This is a quick rating: by probe runs alone, without a full stream." if rating["quick"]
        else f"A full stream of {base['minutes']:,} minutes confirmed it." if rating["confirmed"]
        else "No full stream has confirmed an L.",
    ]  # fmt: skip


def _strict_meaning(rating: Rating, generated: float) -> list[str]:
    """The same for a strict rating: what it cost instead of what it shares."""
    base, speed, costs = rating["base"], rating["speed"], rating["costs"]
    names = {"generation_s": "to generate", "run_s": "to run", "validation_s": "to validate"}
    spent = [f"{costs[name]:,.0f} s {what}" for name, what in names.items() if name in costs]
    written = size(costs.get("answer_bytes", 0))
    return [
        "Strict protocol: no expressway is a copy. Each was generated apart, has its own history, "
        "and its rows are decoded for it alone.",
        "The stream ran at the benchmark's own pace." if speed == 1 else
        f"The stream ran at {speed:g} times the pace, and limits are counted in its seconds.",
        f"{l_text(generated)} expressways, {base['minutes']:,} minutes: {base['reports']:,} "
        f"reports of {base['vehicles']:,} vehicles and {base['queries']:,} requests; "
        f"{written} of answers written to a file.",
        f"The validator computed every answer: “{rating['validated']}”." if rating["validated"]
        else "The answers were not validated.",
        *([f"It took {', '.join(spent)}."] if spent else []),
    ]  # fmt: skip


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _differing(rating: Rating) -> str:
    parts = []
    for step in rating["steps"]:
        digests = step["digests"]
        if digests["different"]:
            differ = f"{digests['different']:,} of {digests['compared']:,} digests differ"
            first = "".join(f"<li>{escape(sentence)}</li>" for sentence in digests["first"])
            parts.append(f"<h3>{escape(_rated(rating, step))}: {differ}</h3><ul>{first}</ul>")
    return section("Answers that differ", "<div class='bad'>", *parts, "</div>") if parts else ""


def _step_rows(rating: Rating) -> tuple[list[str], list[list[str]]]:
    """The columns and rows of the table of steps."""
    limits = (f"{name} (limit\u00a0{LIMIT_S[of[0]]}\u00a0s)" for name, of in ASKED.items())
    heads = ["L", "run", *limits, "verdict", "peak memory", "of the cores", "Mreports/s"]
    rows = []
    for step in rating["steps"]:
        run = f"{step['kind']}, minutes {step['from_minute']:g} to {step['to_minute']:g}"
        if step["speed"] != rating["speed"]:
            run += f", {step['speed']:g} × pace"
        worst = (_worst(step, of) for of in ASKED.values())
        used = ["-"] * 3
        if step["wall_s"] > 0:  # a refused step has no figures
            used = [size(step["peak_memory_bytes"]),
                    f"{_share(step['cpu_s'], step['wall_s'], rating):.0%}",
                    f"{step['reports_per_second'] / 1e6:,.2f}"]  # fmt: skip
        rows.append([
            _l(step) + (" (quick)" if rating["quick"] else ""), run,
            *("-" if seconds is None else f"{seconds:,.3f}" for seconds in worst),
            "passed" if step["passed"] else f"not passed: {step['why']}", *used,
        ])  # fmt: skip
    return heads, rows


def _steps_table(rating: Rating) -> str:
    # Text of cells is escaped, so "<td>" is always the start of a cell.
    table = table_html(*_step_rows(rating)).replace("<td>passed", "<td class='good'>passed")
    table = table.replace("<td>not passed", "<td class='bad why'>not passed")
    return f"<div class='steps'>{table}</div>"


def _details(rating: Rating, step: Step) -> str:
    """All measured figures of a step."""
    rows = [
        (kind, *("-" if of.get(p) is None else f"{of[p]:.3f}" for p in (*PERCENTILES, "worst")),
         of["limit"], f"{of['late']:,}", f"{math.floor(1e6 * of['within_1_s']) / 1e4:g} %")
        for kind, of in step["response_s"].items()
    ]  # fmt: skip
    told = (
        f"{step['reports']:,} reports, {step['answers']:,} answers in {step['wall_s']:,.1f} s with "
        f"{step['cpu_s']:,.1f} s of processors; at most {step['worst_lag_s']:.3f} stream seconds "
        f"behind schedule. By the account it needs {size(step['needed_bytes'])} of memory.\n\n"
        + (f"The longest delay: {step['stall'].rstrip('.')}." if step["stall"] else "")
    )
    heads = ("stream s", *PERCENTILES.values(), "worst", "limit", "late", "within 1 s")
    table = table_html(heads, rows) if rows else ""
    return f"<h3>{escape(_rated(rating, step))}</h3>{paragraphs(told)}{table}"


def _response_plot(steps: Sequence[Step]) -> Any:
    ran = sorted((s for s in steps if _worst(s, STRICT)), key=lambda s: float(s["expressways"]))
    series: Lines = {}
    for kind, runs in RUNS.items():
        for figure, name in (("worst", "worst"), ("p9999", "99.99 %")):
            for step in ran:
                if step["kind"] == kind and (y := _worst(step, STRICT, figure)):
                    series.setdefault(f"{name}, {runs}", []).append((_rated_l(step), y, 0))
    drawn = plots.lines("", "L, expressways", "response time, stream s", series, log_y=True)
    drawn.update_xaxes(rangemode="tozero")  # with a single L, the default range is too narrow
    limit = {"dash": "dash", "color": plots.RED}
    drawn.add_hline(STRICT_S, name=f"limit, {STRICT_S} s", showlegend=True, line=limit)
    if failed := [step for step in ran if not step["passed"]]:
        drawn.add_scatter(
            x=[_rated_l(step) for step in failed], y=[_worst(s, STRICT) for s in failed],
            mode="markers", name="not passed",
            marker={"symbol": "x", "size": 11, "color": plots.RED},
        )  # fmt: skip
    return plots.with_legend_room(drawn)


def _over_time(
    rating: Rating, timelines: Iterable[Rows], key: str, unit: str, one: float
) -> Iterator[tuple[str, Any]]:
    """One line per step. Probes and full streams are separate, as probes are much shorter."""
    for kind, runs in RUNS.items():
        series: Lines = {}
        for step, rows in zip(rating["steps"], timelines, strict=False):
            name = _rated(rating, step).replace(f", {kind}", "")
            while name in series:
                name += ", again"
            if step["kind"] == kind and rows:
                # The maximum of each interval, so that no peak is lost.
                width = -(-len(rows) // MOST_POINTS)
                kept = (rows[i : i + width] for i in range(0, len(rows), width))
                tops = (max(stretch, key=lambda row: row[key]) for stretch in kept)
                series[name] = [(row["stream_s"] / 60, row[key] / one, 0) for row in tops]
        if series:
            failed = [name for name in series if "not passed" in name]
            drawn = plots.lines("", "minute of the stream", unit, series, dashed=failed)
            yield runs, plots.with_legend_room(drawn.update_layout(showlegend=True))


def _cpu_plot(rating: Rating, rows: Rows) -> Any:
    kept = [*rows[:: -(-len(rows) // (MOST_POINTS - 1))], rows[-1]]
    series: Lines = {}
    for key, name in (("cpu_s", "used by the run"), ("steal_s", "taken away by the host")):
        series[name] = [
            (b["stream_s"] / 60, 100 * _share(b[key] - a[key], wall_s, rating), 0)
            for a, b in pairwise(kept)
            if (wall_s := b["wall_s"] - a["wall_s"]) > 0
        ]
    unit = f"processor time, % of {rating['machine']['cores']} cores"
    return plots.lines("", "minute of the stream", unit, series)


def _stage_plot(stages: dict[str, float]) -> Any:
    names = [escape(name) for name in stages]  # plotly interprets HTML tags in labels
    parts = {"": list(stages.values())}
    drawn = plots.stacked_bars("", "time per report, ns of a core", "stage", names, parts)
    words = [f"{ns:.1f}" for ns in stages.values()]
    drawn.update_traces(text=words, textposition="outside", cliponaxis=False)
    return drawn.update_layout(showlegend=False, xaxis_range=[0, 1.15 * max(stages.values())])


def _plots(rating: Rating, timelines: Sequence[Rows]) -> Iterable[tuple[str, str, Any]]:
    """Heading, text and figure of every plot that has data."""
    steps = rating["steps"]
    if any(_worst(step, STRICT) for step in steps):
        words = "Tolls, alerts and balances, on a logarithmic scale. A cross: not passed."
        yield "Response time against L", words, _response_plot(steps)
    for runs, figure in _over_time(rating, timelines, "lag_s", "behind, stream s", 1):
        yield f"Behind schedule: {runs}", "", figure
    for runs, figure in _over_time(rating, timelines, "memory_bytes", "memory, GB", 1e9):
        yield f"Memory: {runs}", "", figure
    rows_of = {id(s): rows for s, rows in zip(steps, timelines, strict=False) if len(rows) > 1}
    if step := _deciding(rating, (step for step in steps if id(step) in rows_of)):
        yield f"Processors: {_rated(rating, step)}", "", _cpu_plot(rating, rows_of[id(step)])
    counted = [step for step in steps if any(step["stage_ns"].values())]
    full = [step for step in counted if step["kind"] == "full"]
    if step := full[-1] if full else _deciding(rating, counted):
        words = f"{sum(step['stage_ns'].values()):.1f} nanoseconds of a core for each report."
        figure = _stage_plot(step["stage_ns"])
        yield f"Where a report's time goes: {_rated(rating, step)}", words, figure


def _origin(rating: Rating) -> dict[str, Any]:
    """Machine, time and command of the rating, in the format of all pages."""
    known = rating["machine"]
    return {**known, "processor": known["cpu"], "xstream": rating["version"]}


def _slowest(rating: Rating) -> str:
    return (
        "The slowest answer of each kind, in stream seconds after the report or request that "
        f"asked for it. A stream second lasts {1 / rating['speed']:.3g} s."
    )


def page_data(rating: Rating, timelines: Sequence[Rows]) -> dict[str, Any]:
    """The page as plain data for `xstream report` (`xstream.report.sections`)."""
    differing = [line for step in rating["steps"] for line in step["digests"]["first"]]
    found = [plain_section("", "\n\n".join(_meaning(rating)), verdict=rating["sentence"])]
    if differing:
        found.append(plain_section("Answers that differ", "\n\n".join(differing)))
    if rating["steps"]:
        title = "Worst response times, step by step"
        found.append(plain_section(title, _slowest(rating), table=_step_rows(rating)))
    for title, words, figure in _plots(rating, timelines):
        found.append(plain_section(title, words, plots=[figure]))
    title = f"Linear Road rating: {_rated(rating)}"
    return {"title": title, "machine": _origin(rating), "sections": found}


def write_page(path: Path, rating: Rating, timelines: Sequence[Rows]) -> None:
    """Write a self-contained HTML file. `timelines` has the rows of each step; may be empty."""
    steps, rated = rating["steps"], _rated(rating)
    machine = rating["machine"] | {"memory_bytes": size(rating["machine"]["memory_bytes"])}
    where = f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_bytes']}"
    drawn = []
    for number, (title, words, figure) in enumerate(_plots(rating, timelines)):
        drawn.append(section(title, paragraphs(words), plots_html([figure], number)))
    total = ("in all", 0, sum(line[2] for line in rating["memory"]))
    parts = [*rating["memory"], total]
    account = [(name, size(one) if one else "-", size(every)) for name, one, every in parts]
    slowest = _slowest(rating)
    ours = (f"xstream, {rating['speed']:g} × pace", rated.removeprefix("L = "), where, "yes")
    published = table_html(("system", "L", "on", "travel time"), [*PUBLISHED, ours])
    details = "".join(_details(rating, step) for step in steps)
    body = [
        _verdict(rating), _list(_meaning(rating)), _differing(rating),
        section("Worst response times, step by step", paragraphs(slowest), _steps_table(rating),
                f"<details><summary>Every figure of every step</summary>{details}</details>")
        if steps else section("No step was run"),
        *drawn,
        section("Beside the published ratings", f'<div class="ours">{published}</div>',
                paragraphs("The others on the machines of their years; none answers travel time.")),
        section(f"Memory by account: {rated}",
                table_html(("for", "one expressway", "in all"), account)) if total[2] else "",
        section("The machine", table_html(("", ""), [
            *((name.removesuffix("_bytes"), machine[name]) for name in MACHINE),
            ("threads", rating["threads"]), ("xstream", rating["version"])])),
    ]  # fmt: skip
    write(path, document(f"Linear Road rating: {rated}", body, _origin(rating), where))
