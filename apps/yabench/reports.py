"""What an engine should report for a window under its report policy."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from yabench.bindings import Bag
from yabench.oracle import Oracle
from yabench.windows import Scope, Window, Windowing

__all__ = ["expected_reports"]


def expected_reports(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> Bag:
    """Return all bindings that a right engine reports for a window.

    `scope` is the range of the window, or a shifted one in gracious mode. With content-change an
    engine reports several times while the window is active; the bindings of all reports count.
    """
    if windowing.policy == "content-change":
        if windowing.only_new:
            return _new_bindings(oracle, windowing, window, scope)
        return _whole_contents(oracle, windowing, window, scope)
    if windowing.policy == "non-empty" and not oracle.items(scope):
        return Bag()
    return oracle.results(scope)


def _new_bindings(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> Bag:
    """Return what is new in each report, compared with the report before it.

    Items that leave when the window moves leave first: what remains of the window before is not new
    unless its result changed.
    """
    kept = Scope(scope.start, max(scope.start, window.opened))
    before = oracle.results(kept)
    if oracle.monotone:
        return oracle.results(scope) - before
    found: Bag = Bag()
    if _items_left(oracle, windowing, window, scope):
        found += before - oracle.results(windowing.window(window.number - 1).scope)
    elif not oracle.items(Scope(0, window.opened)):
        before = Bag()  # nothing has been reported yet
    for content in _changes(oracle, window, scope):
        now = oracle.results(content)
        found += now - before
        before = now
    return found


def _whole_contents(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> Bag:
    """Return the results of the whole content at each change, added up."""
    found: Bag = Bag()
    contents = list(_changes(oracle, window, scope))
    left_alone = not contents or contents[0].end > window.opened + 1
    if left_alone and _items_left(oracle, windowing, window, scope):
        found += oracle.results(Scope(scope.start, max(scope.start, window.opened)))
    if not oracle.monotone:
        for content in contents:
            found.update(oracle.results(content))
        return found
    # A binding that is new at one change is part of all later reports of the window.
    before = oracle.results(Scope(scope.start, max(scope.start, window.opened)))
    for binding, count in before.items():
        found[binding] += count * len(contents)
    arrivals = oracle.arrivals(scope, max(scope.start, window.opened))
    if arrivals is not None:
        ends = [content.end for content in contents]
        for time, binding in arrivals:
            found[binding] += len(ends) - bisect.bisect_right(ends, time)
        return found
    for number, content in enumerate(contents):
        now = oracle.results(content)
        for binding, count in (now - before).items():
            found[binding] += count * (len(contents) - number)
        before = now
    return found


def _changes(oracle: Oracle, window: Window, scope: Scope) -> Iterator[Scope]:
    """Yield the content of the active window whenever items have entered."""
    for time in oracle.times_in(Scope(max(scope.start, window.opened), scope.end)):
        yield Scope(scope.start, time + 1)


def _items_left(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> bool:
    """Return whether items left when the window before this one closed."""
    if window.number == 1:
        return False
    start, end = windowing.window(window.number - 1).scope
    return bool(oracle.items(Scope(start, max(start, min(end, scope.start)))))
