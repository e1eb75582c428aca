"""`Run`: one execution of a query."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from xstream._native import lib
from xstream.assembly import Assembly, InitialState, KernelState, Positions
from xstream.console import interrupts_handled_by
from xstream.engine.attachment import Outcome
from xstream.errors import SegmentMemoryError
from xstream.failure import raise_at_end, raise_failure
from xstream.graph import Graph
from xstream.recovery.checkpoints import Checkpoints
from xstream.results import Results
from xstream.sched import Scheduler
from xstream.sched.threads import MEASURE_MOST_NS, MEASURE_NS, MEASURE_WAIT_NS, PartThreads
from xstream.sigseg import MemoryManager
from xstream.statistics import Counted, Delays, OperatorCost, OperatorStats
from xstream.views import View, shown

__all__ = [
    "Counted",
    "Delays",
    "InitialState",
    "KernelState",
    "OperatorCost",
    "OperatorStats",
    "Positions",
    "Run",
]

#: How long the core runs before Python checks for Ctrl-C, a stop and progress.
LOOK_UP_NS = 50_000_000
#: Time for tuples in flight after a stop, because a cycle might never end.
STOP_GRACE_S = 1.0
#: Time for tuples in flight before a checkpoint.
SETTLE_S = 0.5


class Run(Results):
    """A run of a query: its results so far, and all of them at the end.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query("means")
    >>> out = query.source(xs.io.array(np.arange(64.0), window=8)).mean(name="mean").collect()
    >>> run = query.run(profile=True)
    >>> run[out][:2]
    [3.5, 11.5]
    >>> run.source_samples, run.samples_per_second > 0, run.memory.bytes_copied
    (64, True, 0)
    >>> run.stats["mean"].tuples, run.stats_of("mean").samples
    (8, 64)
    >>> run.costs["mean"].bytes_copied, run.manager_ns > 0, run.queue_bytes_peak
    (0, True, 0)
    >>> len(run.parts), run.checkpoints
    (1, None)
    """

    def __init__(
        self,
        query: Graph,
        scheduler: Scheduler,
        manager: MemoryManager,
        tuple_burst: int | None,
        profile: bool = False,
        state: InitialState | None = None,
        debug: bool | None = None,
        positions: Positions | None = None,
        threads: int = 1,
        fuse: bool = True,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.query, self.scheduler, self.manager = query, scheduler, manager
        self.tuple_burst = tuple_burst
        self.threads = 1
        #: CPU seconds of each thread, without the first phase, which one thread runs alone.
        self.part_seconds: tuple[float, ...] = ()
        self._threads_asked = threads
        self._reading = threading.Lock()
        self._began_at: float | None = None
        self._measured_ns = self._measured_cpu_ns = 0
        self.stopped = False
        self.interrupted = False
        self._phase = "ready"
        self.wall_seconds = 0.0
        self._stopped_at = 0.0
        self._built = Assembly(query, scheduler, manager, debug)
        self._built.build(tuple_burst, fuse, profile, threads)
        self._built.restore(state or {})
        self._built.resume(positions or {})
        self._plan = self._built.plan
        self._checkpoints = checkpoints
        self._stop_asked = False  # a last checkpoint is taken before the run stops
        if checkpoints is not None:
            checkpoints.prepare(self._built, tuple_burst)
        self._earlier_samples = self.source_samples
        #: How long the core runs between two calls of `progress`.
        self.look_up_ns = LOOK_UP_NS
        #: How long one thread runs it before it is divided among several.
        self.measure_ns = MEASURE_NS

    # -- running -----------------------------------------------------------------------------

    def execute(
        self,
        progress: bool | Callable[[Run], None] = False,
        stop: threading.Event | None = None,
        view: View | None = None,
    ) -> None:
        """Run until the sources end, the run is stopped, or an operator fails.

        >>> import numpy as np, xstream as xs
        >>> query = xs.Query()
        >>> out = query.source(xs.io.array(np.zeros(8), window=2)).count()
        >>> run = query.run()  # calls it
        >>> run.stopped
        False
        """
        with shown(self, view):
            self._execute_shown(progress, stop)

    def _execute_shown(
        self, progress: bool | Callable[[Run], None], stop: threading.Event | None
    ) -> None:  # fmt: skip
        line = _ProgressReport(self.query.name) if progress is True else None
        report = line if line is not None else progress if callable(progress) else None
        ended: Outcome = "failed"
        self._phase = "running"
        try:
            with _interrupts_stop(self._interrupt):
                self._plan.begin()
                if self._checkpoints is not None:
                    self._checkpoints.begin(self._built)
                if self._execute(report, stop) == lib.XS_FAILED:
                    self._fail()
                if self._checkpoints is not None:
                    self._checkpoints.close()
                ended = self._outcome()
                if errors := self._plan.end(ended):
                    ended = "failed"
                    raise_at_end(self._built, *errors[0])
        finally:
            self._plan.look_up = _nothing  # otherwise the plan refers to the run
            self._phase = ended
            if ended == "failed":
                self._plan.end(ended)
                if self._checkpoints is not None:
                    self._checkpoints.abandon()
            if line is not None:
                line.close(self)

    def _outcome(self) -> Outcome:
        if not self.stopped:
            return "done"
        return "stopped" if self._checkpoints is None else "suspended"

    def _execute(self, report: Callable[[Run], None] | None, stop: threading.Event | None) -> int:
        """Run the core in slices and return its last status."""
        begin = self._began_at = time.perf_counter()
        self._plan.look_up = partial(self._stop_if_asked, stop)
        status, interrupts = lib.XS_OK, 0
        team: PartThreads | None = None
        measuring = self._threads_asked > 1
        while status in (lib.XS_OK, lib.XS_WAIT):
            try:
                self._stop_if_asked(stop)
                if self._checkpoints is not None and not self.stopped:
                    status = self._look_at_checkpoints(self._checkpoints, team)
                    if status not in (lib.XS_OK, lib.XS_WAIT):
                        break
                if self.stopped and time.perf_counter() - self._stopped_at > STOP_GRACE_S:
                    break
                if team is None:
                    status = self._run_alone(measuring)
                    if status == lib.XS_SETTLED:
                        status, measuring, team = lib.XS_OK, False, self._divide()
                elif team.wait(self.look_up_ns / 1e9):
                    break
                self.wall_seconds = time.perf_counter() - begin
                if report is not None:
                    report(self)
            except KeyboardInterrupt:
                interrupts += 1
                self._interrupt()
                if interrupts > 1:  # interrupted twice: tuples in flight are abandoned
                    break
        if team is not None:
            status = team.end()
            self.part_seconds = tuple(team.cpu_seconds)
        self.wall_seconds = time.perf_counter() - begin
        return int(status)

    def _look_at_checkpoints(self, checkpoints: Checkpoints, team: PartThreads | None) -> int:
        """Take a checkpoint if one is due, and stop the run after its last one."""
        checkpoints.poll()
        if not self._stop_asked and not checkpoints.due():
            return int(lib.XS_OK)
        status = self._settle(team)
        began = time.perf_counter()
        if status == lib.XS_SETTLED:
            try:
                if self._stop_asked:
                    checkpoints.take_last(self._built)
                else:
                    checkpoints.take(self._built, began)
            finally:
                if self._stop_asked:
                    self._stop_now()
                if team is not None:
                    team.go_on()
            return int(lib.XS_OK)
        if self._stop_asked:
            self._stop_now()
        return status

    def _settle(self, team: PartThreads | None) -> int:
        """Run to a point where no tuple is in flight: XS_SETTLED, or how the run ended instead.

        A cycle may never come to such a point, and neither may sources without rate control. Then
        one thread is interrupted between two tuples: those that wait in queues are saved as well.
        """
        if team is not None:
            settled = team.settle(SETTLE_S)
            if not settled and team.left == len(team.statuses):
                team.go_on()
            return int(lib.XS_SETTLED if settled else lib.XS_OK)
        lib.xs_plan_settle(self._plan.handle)
        until = time.perf_counter() + SETTLE_S
        status = int(lib.XS_OK)
        while status in (lib.XS_OK, lib.XS_WAIT) and time.perf_counter() < until:
            status = int(lib.xs_plan_run(self._plan.handle, self.look_up_ns))
        return int(lib.XS_SETTLED) if status in (lib.XS_OK, lib.XS_WAIT) else status

    def _run_alone(self, measuring: bool) -> int:
        """Let the core run on this thread; measured, until it can be divided."""
        if not measuring:
            return int(lib.xs_plan_run(self._plan.handle, self.look_up_ns))
        if not self.measure_ns:
            return int(lib.XS_SETTLED)  # nothing has begun
        if self._is_measured():
            lib.xs_plan_settle_early(self._plan.handle)
        begin, used = time.perf_counter_ns(), time.thread_time_ns()
        budget_ns = min(self.look_up_ns, max(self.measure_ns - self._measured_ns, 0))
        status = int(lib.xs_plan_run(self._plan.handle, budget_ns or self.measure_ns))
        self._measured_ns += time.perf_counter_ns() - begin
        self._measured_cpu_ns += time.thread_time_ns() - used
        return status

    def _is_measured(self) -> bool:
        """Whether the busy times so far are representative, or it has taken long enough."""
        enough = self._measured_ns >= self.measure_ns and lib.xs_plan_is_measured(self._plan.handle)
        long = self._measured_ns >= MEASURE_WAIT_NS or self._measured_cpu_ns >= MEASURE_MOST_NS
        return bool(enough) or long

    def _divide(self) -> PartThreads | None:
        """Cut the plan by the busy times so far; None if it must run on one thread."""
        with self._reading:
            parts = lib.xs_plan_cut(self._plan.handle, self._threads_asked)
            if parts < 0:
                raise SegmentMemoryError("no memory is left for the threads of the query")
            self.threads = parts
        return PartThreads(self._plan, parts) if parts > 1 else None

    def _stop_if_asked(self, stop: threading.Event | None) -> None:
        if stop is not None and stop.is_set() and not self.stopped:
            self._stop()

    def _interrupt(self) -> None:
        self.interrupted = True
        self._stop()

    def _stop(self) -> None:
        if self._checkpoints is None:
            self._stop_now()
        self._stop_asked = True

    def _stop_now(self) -> None:
        if not self.stopped:
            self._stopped_at = time.perf_counter()
        self.stopped = True
        lib.xs_plan_stop(self._plan.handle)

    def _fail(self) -> None:
        try:
            raise_failure(self._built, self._run_again)
        except KeyboardInterrupt:  # Ctrl-C interrupted a Python operator
            self._interrupt()

    def _run_again(self, graph: Graph) -> None:
        Run(graph, self.scheduler, self.manager, None, fuse=False).execute()


def _nothing() -> None:
    """No run is under way that could be stopped."""


@contextmanager
def _interrupts_stop(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C stops the run, and raises only in the code of the user.

    In our code it could arrive in a finaliser, where Python discards it, or while a segment changes
    owner. A second one raises anywhere. A handler that the user has installed is kept.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    presses = 0

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        stop()
        ours = frame is not None and str(frame.f_globals.get("__name__")).startswith("xstream.")
        if presses > 1 or not ours:
            raise KeyboardInterrupt

    with interrupts_handled_by(on_interrupt):
        yield


class _ProgressReport:
    """Shows the progress of a run (`progress=True`) as commands do, and its end in one line."""

    def __init__(self, name: str) -> None:
        from xstream.console import Progress  # this imports the packages of the command line

        self._shown = Progress(name, unit="sample")

    def __call__(self, run: Run) -> None:
        rate = run.samples_per_second / 1e6
        self._shown.update(run.source_samples, note=f"{rate:,.1f} million samples/s")

    def close(self, run: Run) -> None:
        """Remove the bar and say how the run ended."""
        self._shown.__exit__(None, None, None)
        self._shown.say(repr(run))
