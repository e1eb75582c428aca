"""A judge of windowed engines, written from its specification alone, as slowly as it likes.

It shares no code with yabench. Time passes millisecond by millisecond, every pair of borders is
tried, and bindings are matched by augmenting paths.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from tests.reference.yabench import equal_rows, f1, scope_of

Row = dict[str, Any]
Item = dict[str, Any]
Query = Callable[[list[Item]], list[Row]]


class Report(NamedTuple):
    """One result of an engine: the end that it names, when it arrived, and its rows."""

    named: int | None
    arrival: int | None
    rows: list[Row]


class Verdict(NamedTuple):
    """What is to be said of one window."""

    start: int
    end: int
    precision: Fraction
    recall: Fraction
    actual: int
    expected: int
    delay: int | None
    items: int
    start_shift: int = 0
    end_shift: int = 0


class Benchmark(NamedTuple):
    """A stream, a query (`monotone`: items that enter never remove a row), and its windows."""

    items: list[Item]
    query: Query
    monotone: bool
    size: int
    slide: int
    policy: str
    only_new: bool = False
    period: int = 0

    def content(self, start: int, end: int) -> list[Item]:
        return [item for item in self.items if start <= item["time"] < end]

    def windows(self) -> list[tuple[int, int]]:
        """All windows with an item in them or before them; with periodic, all reports."""
        last = max(item["time"] for item in self.items)
        if self.policy != "periodic":
            count = 1
            while scope_of(count + 1, self.size, self.slide)[0] <= last:
                count += 1
            return [scope_of(number, self.size, self.slide) for number in range(1, count + 1)]
        found = []
        end = 0
        while end <= last:
            end += self.period
            found.append((self.active(end - 1)[0], end))
        return found

    def active(self, time: int) -> tuple[int, int]:
        """The window that is active at a time: the one that closes next."""
        return scope_of(time // self.slide + 1, self.size, self.slide)

    def expected(self, window: tuple[int, int], start: int, end: int) -> list[Row]:
        """All rows of the reports for a window whose borders are moved to start and end."""
        if self.policy == "content-change":
            return [row for rows in self._changes(window, start, end) for row in rows]
        if self.policy == "non-empty" and not self.content(start, end):
            return []
        return self.query(self.content(start, end))

    def _changes(self, window: tuple[int, int], start: int, end: int) -> list[list[Row]]:
        opened = window[1] - self.slide
        before = self.content(*self.active(opened - 1)) if opened else []
        last = self.query(before) if any(i["time"] < opened for i in self.items) else []
        reports = []
        for time in range(opened, max(end, opened + 1)):
            now = self.content(start, max(start, min(time + 1, end)))
            if now != before:
                rows = self.query(now)
                known = last
                if self.monotone:
                    known = self.query([item for item in before if item in now])
                reports.append(without(rows, known) if self.only_new else rows)
                last = rows
            before = now
        return reports


def without(rows: list[Row], known: list[Row]) -> list[Row]:
    left = list(known)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(row)
    return found


def matched(one: list[Row], two: list[Row]) -> int:
    """The largest number of disjoint pairs of equal rows."""
    partner: dict[int, int] = {}

    def augment(i: int, seen: set[int]) -> bool:
        for j, row in enumerate(two):
            if j not in seen and equal_rows(one[i], row):
                seen.add(j)
                if j not in partner or augment(partner[j], seen):
                    partner[j] = i
                    return True
        return False

    return sum(augment(i, set()) for i in range(len(one)))


def precision_recall(expected: list[Row], actual: list[Row]) -> tuple[Fraction, Fraction]:
    if not expected:
        return Fraction(0 if actual else 1), Fraction(1)
    if not actual:
        return Fraction(1), Fraction(0)
    found = matched(expected, actual)
    return Fraction(found, len(actual)), Fraction(found, len(expected))


def pair(
    bench: Benchmark, reports: list[Report], windows: list[tuple[int, int]]
) -> tuple[dict[int, list[Report]], int]:
    """By the end that a result names, else by order of arrival; and how many belong nowhere."""
    ends = [end for _, end in windows]
    of: dict[int, list[Report]] = {end: [] for end in ends}
    for report in reports:
        if report.named in of:
            of[report.named].append(report)  # type: ignore[index]
    stray = 0
    latest = 0  # results are in order of arrival, so later ones are for no earlier window
    for report in reports:
        if report.named in of:
            continue
        time = report.named if report.arrival is None else report.arrival
        latest = max(latest, latest if time is None else time)
        may = [
            end
            for start, end in windows
            if latest < end + bench.slide and (time is None or start <= time)
        ]
        free = [end for end in may if not of[end]]
        if free:
            of[free[0]].append(report)
        elif may:
            of[may[-1]].append(report)
        else:
            stray += bool(report.rows)
    return of, stray


def moved(bench: Benchmark, window: tuple[int, int], actual: list[Row]) -> tuple[int, int]:
    """The borders within one slide with the best F1, then the smallest shift, then the earliest."""
    times = {item["time"] for item in bench.items}
    times.add(max(times) + 1)  # behind the last item, which an end could not include otherwise
    starts, ends = (
        sorted({border} | {time for time in times if abs(time - border) <= bench.slide})
        for border in window
    )
    tried = []
    for start in starts:
        for end in ends:
            if start <= end or (start, end) == window:
                fit = f1(*precision_recall(bench.expected(window, start, end), actual))
                shift = abs(start - window[0]) + abs(end - window[1])
                tried.append((-fit, shift, start, end))
    return min(tried)[2:]


def judged(bench: Benchmark, reports: list[Report], gracious: bool) -> tuple[list[Verdict], int]:
    """The verdict on every window, and the number of results that belong to none."""
    windows = bench.windows()
    step = bench.period if bench.policy == "periodic" else bench.slide
    named = [r.named for r in reports if r.rows and r.named is not None and r.named % step == 0]
    while named and windows[-1][1] < max(named):  # an engine may name a window behind the stream
        end = windows[-1][1] + step
        windows.append((bench.active(end - 1)[0], end))
    of, stray = pair(bench, reports, windows)
    found = []
    for window in windows:
        actual = [row for report in of[window[1]] for row in report.rows]
        start, end = window
        expected = bench.expected(window, start, end)
        if gracious:
            start, end = moved(bench, window, actual)
            expected = bench.expected(window, start, end)
        times = [r.named if r.arrival is None else r.arrival for r in of[window[1]]]
        known = [time for time in times if time is not None]
        found.append(
            Verdict(
                *window,
                *precision_recall(expected, actual),
                len(actual),
                len(expected),
                max(known) - window[1] if known else None,
                len(bench.content(*window)),
                start - window[0],
                end - window[1],
            )
        )
    return found, stray
