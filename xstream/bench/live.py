"""`xstream bench live`: what a live view costs, in turns with runs that nobody watches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import process_time, thread_time
from typing import Any, Protocol

from xstream.bench.history import slowdown
from xstream.bench.queries import Passchain
from xstream.bench.recording import read_recording, whole_windows
from xstream.bench.report import Figure, Report
from xstream.bench.settings import Settings
from xstream.bench.subjects import application, lasting
from xstream.bench.trials import Trial, interleave
from xstream.query import Query
from xstream.views import View

__all__ = ["CHAIN", "PageView", "live"]

#: The subject that is no application: a chain of operators that pass windows on.
CHAIN = "chain"
#: At most one percent of the throughput.
CEILING_PERCENT = 1.0
#: A page: for each run it asks for the graph, as `live.js` does, and then takes every frame.
_PAGE = """
import sys, urllib.request
address = sys.argv[1]
get = lambda name: urllib.request.urlopen(address + name)
with get("events?at=0&speed=1") as events:
    for line in events:
        if line.startswith((b"event: run", b"retry:")):
            with get("run.json?flow=right") as run:
                run.read()
        if line.startswith(b"event: frame"):
            print("frame", flush=True)
"""


class PageView(View, Protocol):
    """A live view with a page, which is open while several runs are shown."""

    @property
    def address(self) -> str | None:
        """The address of the page."""

    def __enter__(self) -> PageView:
        """Open the page."""

    def __exit__(self, *error: Any) -> None:
        """Close it."""


class _Runs:
    """Runs a query with and without a view; each run has to do what the first one did."""

    def __init__(self, query: Query, settings: Settings, view: View) -> None:
        self.query, self.engine, self.view = query, settings.engine, view
        self.wanted: dict[str, tuple[int, int]] | None = None
        #: CPU time of all other threads, as shares of that of the thread that runs the query.
        self.beside: dict[bool, list[float]] = {False: [], True: []}

    def trial(self, watched: bool) -> Trial:
        """Measure one run."""
        own, every = thread_time(), process_time()
        run, trial = self.engine.timed_run(self.query, self.view if watched else None)
        own, every = thread_time() - own, process_time() - every
        self.beside[watched].append((every - own) / own)
        found = {name: (stats.tuples, stats.samples) for name, stats in run.stats.items()}
        if self.wanted is None:
            self.wanted = found
        if found != self.wanted:
            raise AssertionError(f"{self.query.name}: other tuples than in the first run")
        return trial


@contextmanager
def _page(address: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads a live view as a page does, so that its own work is not counted."""
    reader = subprocess.Popen([sys.executable, "-c", _PAGE, address], stdout=subprocess.PIPE)
    try:
        yield reader
        reader.terminate()
    finally:
        reader.kill()
        reader.communicate()


def live(settings: Settings, subject: str, page_view: PageView) -> Report:
    """Measure a query with a live view and one open page, and without."""
    query = _query(settings, subject)
    report = Report("live", settings.to_json())
    with page_view as view:
        assert view.address is not None
        runs = _Runs(query, settings, view)
        with _page(view.address) as page:
            runs.trial(watched=True)
            assert page.stdout is not None
            if not page.stdout.readline():  # the page has ended
                raise AssertionError("the page of the live view has not had any frame")
            results = interleave(
                {
                    f"{subject}, nobody watches": partial(runs.trial, False),
                    f"{subject}, a live view and a page": partial(runs.trial, True),
                },
                settings.trials,
                settings.progress,
            )
    alone, watched = report.results = list(results.values())
    slower, half = slowdown(
        [each.samples_per_second for each in alone.trials],
        [each.samples_per_second for each in watched.trials],
        in_turns=True,
    )
    beside = median(runs.beside[True]) - median(runs.beside[False])
    clock = "throughput" if settings.clock == "wall" else "CPU time"
    report.figures.append(
        Figure(f"{clock} that the live view costs", 100 * slower, "%", ceiling=CEILING_PERCENT)
    )
    report.figures.append(Figure("half of its 95 % interval", 100 * half, "%"))
    report.figures.append(
        Figure("CPU time of its threads, of the run's", 100 * beside, "%", ceiling=CEILING_PERCENT)
    )
    report.notes.append(
        "The CPU time of the view's threads hardly depends on other load on the machine; the "
        "difference of the rates does."
    )
    report.checked = f"{subject}: the tuples and samples of every operator in each run"
    return report


def _query(settings: Settings, subject: str) -> Query:
    if subject != CHAIN:
        return application(subject, settings.window, settings.seconds, settings.progress)()
    samples, rate_hz = read_recording(settings.input)
    recording = whole_windows(samples, settings.window)
    chain = Passchain(recording, settings.window, rate_hz, settings.operators, settings.kind)

    def declared(repeat: int) -> Query:
        query = Query(f"{settings.operators:,} operators")
        chain.build(query, repeat).count()
        return query

    return lasting(declared, settings.seconds, settings.progress)
