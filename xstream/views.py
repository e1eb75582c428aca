"""What shows a run while it is under way, for `q.run(live=...)`.

Views are in a room above this one (`xstream.live`), and the package itself says where
(`xstream/__init__.py`): a query does not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from xstream.run import Run

__all__ = ["View", "open_view", "shown", "use_views"]


class View(Protocol):
    """Shows a run: `begin` is called when it starts, and `end` when it is over or has failed."""

    def begin(self, run: Run) -> None:
        """Begin to show a run."""

    def end(self, run: Run, error: BaseException | None) -> None:
        """Show the end. Must return soon, and not raise."""


_openers: list[Callable[[object], View]] = []


def use_views(opener: Callable[[object], View]) -> Callable[[object], View]:
    """Set the function that makes a view of what `live=` was given; a decorator."""
    _openers[:] = [opener]
    return opener


def open_view(asked: object) -> View:
    """The view for the value of `live=`."""
    return _openers[0](asked)


@contextmanager
def shown(run: Run, view: View | None) -> Iterator[None]:
    """Show a run in a view until the block is over."""
    if view is None:
        yield
        return
    view.begin(run)
    error: BaseException | None = None
    try:
        yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        view.end(run, error)
