"""Queries for `xstream profile`: of an installed application, or of any script."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

from xstream.console import Progress
from xstream.errors import InputError
from xstream.query import Query

__all__ = [
    "GROUP", "application", "applications", "lasting", "line_that_failed", "script_query",
]  # fmt: skip

#: Group of the entry points of queries: functions (query, window, repeat).
GROUP = "xstream.queries"


def applications() -> dict[str, metadata.EntryPoint]:
    """Return the entry points of applications that can be profiled, by name."""
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def application(
    name: str, window: int, seconds: float, progress: Progress | None = None
) -> Callable[[], Query]:
    """Return an application's query, with repetitions for about the given run time."""
    told = progress or Progress.silent()
    known = applications()
    if name not in known:
        names = ", ".join(sorted(known)) or "none is installed"
        raise InputError(f"{name} is neither a script nor an application ({names})")
    if window < 1:
        raise InputError(f"--window is at least 1, not {window}")
    if not seconds > 0:
        raise InputError(f"--seconds is a positive number, not {seconds:g}")
    declare = known[name].load()

    def declared(repeat: int) -> Query:
        query = Query(name)
        declare(query, window, repeat)
        return query

    chosen = lasting(declared, seconds, told)
    return lambda: chosen


def lasting(declared: Callable[[int], Query], seconds: float, told: Progress) -> Query:
    """Return a query with repetitions for about the given run time."""
    declared(1).run(debug=False).uninterrupted()  # compiles its kernels
    repeat = 1
    while True:
        told.advance(note="choosing the number of repetitions")
        query = declared(repeat)
        begin = perf_counter()
        query.run(debug=False).uninterrupted()
        took = perf_counter() - begin
        if took > seconds / 4 or repeat >= 1 << 16:
            return declared(max(1, round(repeat * seconds / took)))
        repeat *= 4


class _Found(BaseException):
    """Carries the query out of the script, past every `except Exception` of the script."""

    def __init__(self, query: Query) -> None:
        super().__init__()
        self.query = query


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute while the block runs."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def script_query(path: Path, arguments: Sequence[str] = (), number: int = 1) -> Query:
    """Run a script up to its `number`-th query and return that query.

    Earlier queries run normally. The output of the script is dropped.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a script that can be read")
    if number < 1:
        raise InputError(f"--query counts from 1, not {number}")
    seen = 0
    run = Query.run

    def found(self: Query, *given: Any, **named: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == number:
            raise _Found(self)
        return run(self, *given, **named).uninterrupted()

    with (
        _replaced(Query, "run", found),
        _replaced(sys, "argv", [str(path), *arguments]),
        _replaced(sys, "path", [str(path.resolve().parent), *sys.path]),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except _Found as carrier:
            return carrier.query
        except SystemExit as ended:
            raise InputError(
                f"{path} ended with {ended.code!r} before it ran its query: give its arguments "
                "behind --"
            ) from ended
        except Exception as error:
            where = line_that_failed(path, error) or str(path)
            raise InputError(f"{where}: {type(error).__name__}: {error}") from error
    raise InputError(f"{path} runs {seen or 'no'} queries with Query.run, so there is no {number}.")


def line_that_failed(path: Path, error: BaseException) -> str | None:
    """Return the line of a script that an error or its cause comes from, or None."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}: {(error.text or '').strip()}"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    if frames:
        return f"{path}, line {frames[-1].lineno}: {frames[-1].line}"
    return line_that_failed(path, error.__cause__) if error.__cause__ is not None else None
