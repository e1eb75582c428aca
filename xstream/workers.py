"""Several queries at once, each on a thread of its own: compiled operators run without the GIL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from xstream.run import Run

__all__ = ["Job", "run_together"]

#: Runs a query until it ends or the event is set.
Job = Callable[[threading.Event], Run]

LOOK_EVERY_S = 0.05


class _Worker(threading.Thread):
    """One of the jobs; the first that fails stops all others."""

    def __init__(self, job: Job, stop: threading.Event, on_failure: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.job, self.stop, self.on_failure = job, stop, on_failure
        self.run_: Run | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the query to its end."""
        try:
            self.run_ = self.job(self.stop)
        except BaseException as error:
            self.error = error
            self.stop.set()
            self.on_failure()


def run_together(
    jobs: Sequence[Job],
    progress: Callable[[], None] = lambda: None,
    on_failure: Callable[[], None] = lambda: None,
) -> list[Run]:
    """Run queries on a thread each, and return their runs when all have ended.

    The calling thread looks at `progress` meanwhile. When a query fails, the event that all jobs
    were given is set, `on_failure` is called (it may abandon channels that others wait for), and
    the first error is raised when all have ended. An interrupt ends them in the same way.

    >>> import xstream as xs
    >>> def job(number):
    ...     query = xs.Query()
    ...     query.source(xs.io.iterable(range(number), out=int)).count(name="total")
    ...     return lambda stop: query.run(stop=stop)
    >>> runs = run_together([job(3), job(5)])
    >>> [run.stats["total"].tuples for run in runs]
    [3, 5]
    """
    stop = threading.Event()
    workers = [_Worker(job, stop, on_failure) for job in jobs]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            while worker.is_alive():
                worker.join(LOOK_EVERY_S)
                progress()
    except BaseException:
        stop.set()
        on_failure()
        raise
    finally:
        for worker in workers:
            worker.join()
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    return [worker.run_ for worker in workers if worker.run_ is not None]
