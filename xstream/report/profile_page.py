"""The page of `xstream profile`: variants side by side, and who causes what."""

from __future__ import annotations

from typing import Any

from xstream.bench.profile import Comparison, Profile
from xstream.report import plots
from xstream.report.page import document, machine_line, paragraphs, plot_html, section, table_html
from xstream.sigseg import REASONS

__all__ = ["copy_rows", "overview_rows", "profile_page", "profile_parts"]

OVERVIEW = (
    "variant", "Msamples/s", "of best", "copied", "B a sample", "allocations", "reallocations",
    "moved", "peak", "manager", "operators", "engine",
)  # fmt: skip
#: Operators that copied less than this share of all are left out of tables.
_LEAST_SHARE = 0.001


def size(bytes_: float) -> str:
    """Bytes for people.

    >>> size(0), size(1_536_000)
    ('0 B', '1.5 MB')
    """
    for unit, large in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= large:
            return f"{bytes_ / large:.1f} {unit}"
    return f"{bytes_:.0f} B"


def short_names(comparison: Comparison) -> list[str]:
    """Variants by what tells them apart: their managers alone where only those differ."""
    variants = [profile.variant for profile in comparison.profiles]
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


def overview_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One row a variant, under OVERVIEW."""
    best = max(profile.samples_per_second for profile in comparison.profiles)
    return [
        (
            profile.variant.name,
            f"{profile.samples_per_second / 1e6:,.1f}",
            f"{profile.samples_per_second / best:.2f}",
            size(profile.memory.bytes_copied),
            f"{profile.memory.bytes_copied / max(1, profile.samples):,.2f}",
            f"{profile.memory.allocations:,}",
            f"{profile.memory.reallocations:,}",
            f"{profile.memory.moved_reallocations:,}",
            size(profile.memory.peak_bytes),
            f"{profile.manager_share:.0%}",
            f"{profile.operator_share:.0%}",
            f"{profile.engine_share:.0%}",
        )
        for profile in comparison.profiles
    ]


def copy_rows(profile: Profile) -> list[tuple[str, ...]]:
    """Who causes the copies: operator, bytes, share, why."""
    total = max(1, profile.memory.bytes_copied)
    rows: list[tuple[str, ...]] = []
    for operator in sorted(profile.operators, key=lambda each: -each.bytes_copied):
        if operator.bytes_copied <= _LEAST_SHARE * total:
            continue
        why = ", ".join(
            f"{reason} {size(copied)}"
            for reason, copied in sorted(operator.copied_for.items(), key=lambda item: -item[1])
            if copied
        )
        rows.append((
            operator.name, size(operator.bytes_copied), f"{operator.bytes_copied / total:.0%}", why
        ))  # fmt: skip
    return rows


def _plots(comparison: Comparison) -> list[Any]:
    profiles = comparison.profiles
    names = short_names(comparison)
    found = [
        plots.stacked_bars(
            "Samples a second, in millions", "Msamples/s", names,
            {"best of plain runs": [profile.samples_per_second / 1e6 for profile in profiles]},
        ),
        plots.stacked_bars(
            "Where the time goes", "share of the profiled run", names,
            {
                "operators": [profile.operator_share for profile in profiles],
                "memory manager": [profile.manager_share for profile in profiles],
                "engine and clock": [profile.engine_share for profile in profiles],
            },
            percent=True,
        ),
        plots.stacked_bars(
            "Bytes copied for each sample, and why", "bytes a sample", names,
            {
                reason: [p.memory.copied_for[reason] / max(1, p.samples) for p in profiles]
                for reason in REASONS
                if any(p.memory.copied_for[reason] for p in profiles)
            },
        ),
        plots.lines(
            "Memory that segments take, over the profiled run", "share of the run", "MB",
            {
                name: [
                    (at / max(profile.timeline[-1][0], 1e-9), live / 1e6, 0.0)
                    for at, live in profile.timeline
                ]
                for name, profile in zip(names, profiles, strict=True)
                if profile.timeline
            },
        ),
    ]  # fmt: skip
    for figure in found[:3]:
        figure.update_layout(height=170 + 34 * len(names))
    return found


def profile_parts(comparison: Comparison, first_plot: int = 0) -> list[str]:
    """What stands on the page, for pages that gather several."""
    parts = [
        section("Side by side", table_html(OVERVIEW, overview_rows(comparison))),
        paragraphs(
            "Throughput is the best of several plain runs, measured in turns. Counts and shares "
            "come from one more run in which every tuple and every call into the manager is timed; "
            "what the clock itself takes is in the engine's share."
        ),
        *(plot_html(figure, first_plot + i) for i, figure in enumerate(_plots(comparison))),
    ]
    for profile in comparison.profiles:
        rows = copy_rows(profile)
        copies = (
            table_html(("operator", "copied", "of all", "why"), rows)
            if rows
            else paragraphs("Nothing is copied.")
        )
        operators = table_html(
            ("operator", "tuples", "samples", "own time, ms", "of it in the manager, ms",
             "allocations", "queue peak"),
            [
                (
                    each.name, f"{each.tuples:,}", f"{each.samples:,}",
                    f"{each.busy_ns / 1e6:,.2f}", f"{each.manager_ns / 1e6:,.2f}",
                    f"{each.allocations:,}", f"{each.queue_peak:,}",
                )
                for each in profile.operators
            ],
        )  # fmt: skip
        parts.append(
            section(
                profile.variant.name, "<h3>Who causes the copies</h3>", copies,
                f"<details><summary>Every operator</summary>{operators}</details>",
            )
        )  # fmt: skip
    return parts


def profile_page(comparison: Comparison) -> str:
    """A whole page."""
    by = "" if comparison.clock == "wall" else "; by the processor's clock"
    return document(
        f"Memory managers under {comparison.query}", profile_parts(comparison),
        machine_line(comparison.machine) + by,
    )  # fmt: skip
