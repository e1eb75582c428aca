"""What an engine should report for a window under its report policy."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from yabench.bindings import Bag
from yabench.near import NearBindings
from yabench.oracle import Oracle
from yabench.windows import Scope, Window, Windowing

__all__ = ["content_changed", "expected_reports"]


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

    Where items only add results, what is new are the results that the items of the window before
    do not have. Other results, such as averages, are new whenever they differ from the last report.
    """
    kept = Scope(scope.start, max(scope.start, window.opened))
    if oracle.monotone:
        return oracle.results(scope) - oracle.results(kept)
    before = Bag()  # nothing has been reported before the first item
    if oracle.items(Scope(0, window.opened)):
        before = oracle.results(windowing.window(window.number - 1).scope)
    found: Bag = Bag()
    for content in _contents(oracle, windowing, window, scope):
        now = oracle.results(content)
        found += _without(now, before)
        before = now
    return found


def _without(now: Bag, before: Bag) -> Bag:
    """Return the bindings that are new; averages of the same items may be rounded differently."""
    new, gone = now - before, before - now
    near = NearBindings(gone)
    for binding in list(new) if gone else ():
        for equal in near.equal_to(binding):
            same = min(new[binding], gone[equal])
            new[binding] -= same
            gone[equal] -= same
    return +new


def _whole_contents(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> Bag:
    """Return the results of the whole content at each change, added up."""
    found: Bag = Bag()
    every = _contents(oracle, windowing, window, scope)
    if not oracle.monotone:
        for content in every:
            found.update(oracle.results(content))
        return found
    contents = list(_changes(oracle, window, scope))
    if len(contents) < len(every):
        found += oracle.results(Scope(scope.start, max(scope.start, window.opened)))
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


def _contents(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> list[Scope]:
    """Return the content at each change: when items enter, and when they only leave.

    Items leave when the window before closes; if others enter at that very time, it is one change.
    """
    contents = list(_changes(oracle, window, scope))
    alone = not contents or contents[0].end > window.opened + 1
    if alone and _items_left(oracle, windowing, window, scope):
        contents.insert(0, Scope(scope.start, max(scope.start, window.opened)))
    return contents


def content_changed(oracle: Oracle, windowing: Windowing, window: Window, time_ms: float) -> bool:
    """Return whether the content has changed by a time, since the window is active."""
    if oracle.items(Scope(window.opened, int(time_ms) + 1)):
        return True
    return _items_left(oracle, windowing, window, window.scope)


def _items_left(oracle: Oracle, windowing: Windowing, window: Window, scope: Scope) -> bool:
    """Return whether items left when the window before this one closed."""
    if window.number == 1:
        return False
    start, end = windowing.window(window.number - 1).scope
    return bool(oracle.items(Scope(start, max(start, min(end, scope.start)))))
