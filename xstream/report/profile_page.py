"""The page of `xstream profile`: variants side by side, and the operators that cause copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xstream.bench.profile import Variant
from xstream.report import plots
from xstream.report.page import document, paragraphs, plots_html, section, table_html
from xstream.sigseg import REASONS

__all__ = ["OVERVIEW", "copy_rows", "overview_rows", "profile_page", "profile_parts", "size"]

OVERVIEW = (
    "variant", "Msamples/s", "of best", "copied", "B/sample", "allocations", "reallocations",
    "moved", "peak", "manager", "operators", "engine",
)  # fmt: skip
#: Operators that copied less than this share of all are left out of tables.
_LEAST_SHARE = 0.001


def size(bytes_: float) -> str:
    """Format a number of bytes.

    >>> size(0), size(1_536_000)
    ('0 B', '1.5 MB')
    """
    for unit, large in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= large:
            return f"{bytes_ / large:.1f} {unit}"
    return f"{bytes_:.0f} B"


def variant_of(profile: dict[str, Any]) -> Variant:
    """Return the variant of a profile."""
    return Variant(profile["scheduler"], profile["memory"], profile["batch"])


def short_names(profiles: Sequence[dict[str, Any]]) -> list[str]:
    """Name variants by the settings in which they differ, for example the manager alone."""
    variants = [variant_of(profile) for profile in profiles]
    schedulers = {variant.scheduler for variant in variants}
    batches = {variant.batch for variant in variants}
    return [
        ", ".join(
            part
            for part, wanted in (
                (variant.memory, True),
                (variant.scheduler, len(schedulers) > 1),
                (f"batch {variant.batch or 'no limit'}", len(batches) > 1),
            )
            if wanted
        )
        for variant in variants
    ]


def overview_rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one row per variant, with the columns OVERVIEW."""
    best = max(profile["samples_per_second"] for profile in found["profiles"])
    return [
        (
            variant_of(profile).name,
            f"{profile['samples_per_second'] / 1e6:,.1f}",
            f"{profile['samples_per_second'] / best:.2f}",
            size(profile["memory_counters"]["bytes_copied"]),
            f"{profile['copied_bytes_per_sample']:,.2f}",
            f"{profile['memory_counters']['allocations']:,}",
            f"{profile['memory_counters']['reallocations']:,}",
            f"{profile['memory_counters']['moved_reallocations']:,}",
            size(profile["memory_counters"]["peak_bytes"]),
            *(f"{profile['shares'][part]:.0%}" for part in ("manager", "operators", "engine")),
        )
        for profile in found["profiles"]
    ]


def copy_rows(profile: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the causes of copies: operator, bytes, share, reason."""
    total = max(1, profile["memory_counters"]["bytes_copied"])
    rows: list[tuple[str, ...]] = []
    for operator in sorted(profile["operators"], key=lambda each: -each["bytes_copied"]):
        copied = operator["bytes_copied"]
        if copied <= _LEAST_SHARE * total:
            continue
        why = ", ".join(
            f"{reason} {size(bytes_)}"
            for reason, bytes_ in sorted(operator["copied_for"].items(), key=lambda item: -item[1])
            if bytes_
        )
        rows.append((operator["name"], size(copied), f"{copied / total:.0%}", why))
    return rows


def _plots(profiles: Sequence[dict[str, Any]]) -> list[Any]:
    names = short_names(profiles)
    copied = [profile["memory_counters"]["copied_for"] for profile in profiles]
    return [
        plots.stacked_bars(
            "Samples per second, in millions", "Msamples/s", "variant", names,
            {"best of plain runs": [profile["samples_per_second"] / 1e6 for profile in profiles]},
        ),
        plots.stacked_bars(
            "Where the time goes", "share of the profiled run", "variant", names,
            {
                title: [profile["shares"][part] for profile in profiles]
                for part, title in (
                    ("operators", "operators"), ("manager", "memory manager"),
                    ("engine", "engine and clock"),
                )
            },
            percent=True,
        ),
        plots.stacked_bars(
            "Bytes copied per sample, by reason", "bytes per sample", "variant", names,
            {
                reason: [
                    each[reason] / max(1, profile["samples"])
                    for each, profile in zip(copied, profiles, strict=True)
                ]
                for reason in REASONS
                if any(each[reason] for each in copied)
            },
        ),
        plots.lines(
            "Memory of segments during the profiled run", "share of the run", "memory, MB",
            {
                name: [
                    (at / max(profile["timeline"][-1][0], 1e-9), live / 1e6, 0.0)
                    for at, live in profile["timeline"]
                ]
                for name, profile in zip(names, profiles, strict=True)
                if profile["timeline"]
            },
        ),
    ]  # fmt: skip


def _operator_table(profile: dict[str, Any]) -> str:
    return table_html(
        ("operator", "tuples", "samples", "own time, ms", "in the manager, ms",
         "allocations", "queue peak"),
        [
            (
                each["name"], f"{each['tuples']:,}", f"{each['samples']:,}",
                f"{each['busy_ns'] / 1e6:,.2f}", f"{each['manager_ns'] / 1e6:,.2f}",
                f"{each['allocations']:,}", f"{each['queue_peak']:,}",
            )
            for each in profile["operators"]
        ],
    )  # fmt: skip


def profile_parts(found: dict[str, Any], first_plot: int = 0) -> list[str]:
    """Return the parts of the page of a comparison, which is plain data."""
    parts = [
        section("Side by side", table_html(OVERVIEW, overview_rows(found))),
        paragraphs(
            "Throughput is the best of several plain runs, measured in turns. Counts and shares "
            "come from further runs in which every tuple and every call into the manager is timed; "
            "the cost of reading the clock is part of the engine's share."
        ),
        plots_html(_plots(found["profiles"]), first_plot),
    ]
    for profile in found["profiles"]:
        rows = copy_rows(profile)
        copies = (
            table_html(("operator", "copied", "of all", "reason"), rows)
            if rows
            else paragraphs("Nothing is copied.")
        )
        operators = (
            f"<details><summary>Every operator</summary>{_operator_table(profile)}</details>"
        )
        parts.append(
            section(
                variant_of(profile).name, "<h3>Causes of copies</h3>", copies, operators
            )
        )  # fmt: skip
    return parts


def profile_page(found: dict[str, Any]) -> str:
    """Return the page as HTML."""
    by = "wall-clock time" if found["clock"] == "wall" else "CPU time"
    title = f"Memory managers under {found['query']}"
    return document(title, profile_parts(found), found["machine"], f"Measured in {by}.")
