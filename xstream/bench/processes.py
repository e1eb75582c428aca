"""The query of an application in several processes at once: what several cores can give at most."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from types import TracebackType

from xstream.bench.queries import Engine
from xstream.bench.subjects import applications
from xstream.bench.trials import Trial
from xstream.query import Query

__all__ = ["Processes"]


class Processes:
    """Processes that run the same query with one thread each, all at the same time.

    They share nothing but the machine, so their samples per second, added up, are what as many
    threads could reach if cutting the query cost nothing.
    """

    def __init__(self, count: int, subject: str, window: int, engine: Engine, samples: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, subject, window, engine, samples), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Processes:
        for pipe in self._pipes:
            pipe.recv()  # its kernels are compiled
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            if kind is not None:
                process.terminate()
            process.join()

    def trial(self) -> Trial:
        """One run in each process; it ends with the last one."""
        for pipe in self._pipes:
            pipe.send(None)
        trials: list[Trial] = [pipe.recv() for pipe in self._pipes]
        return Trial(
            sum(trial.samples for trial in trials), max(trial.seconds for trial in trials),
            processor_share=min(trial.processor_share for trial in trials),
        )  # fmt: skip


def _serve(pipe: Connection, subject: str, window: int, engine: Engine, samples: int) -> None:
    """Run the query of about so many samples whenever the other side asks for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    declare = applications()[subject].load()

    def declared(repeat: int) -> Query:
        query = Query(subject)
        declare(query, window, repeat)
        return query

    once = engine.run(declared(1)).source_samples
    query = declared(max(1, round(samples / once)))
    pipe.send(None)
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        pipe.send(engine.timed_run(query)[1])
