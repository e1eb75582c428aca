"""A program that runs during a probe: started, measured from outside, and stopped for certain."""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from xstream.errors import XStreamError

__all__ = ["Running", "StartError", "ended_with_parent", "running"]

LISTENING = re.compile(rb"listening on (127\.0\.0\.1:\d+)")
SAMPLE_S = 0.5
STOP_S = 10.0  # from SIGTERM to SIGKILL
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


class StartError(XStreamError):
    """A system did not start."""


def ended_with_parent(sent: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: send a signal to the process when the one that started it is gone."""
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_SET_DEATH_SIGNAL, int(sent))


class Running:
    """A program and all processes below it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        self._root = psutil.Process(process.pid)
        self._cpu_s: dict[tuple[int, float], float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sampler", daemon=True)
        self.address = ""
        #: Seconds from the start until a driver could connect.
        self.start_s = 0.0
        #: The largest sum of memory, in which what several processes share counts once.
        self.peak_memory_bytes = 0
        self._thread.start()

    @property
    def cpu_s(self) -> float:
        """Seconds of processors that all processes have used."""
        self._sample()
        return sum(self._cpu_s.values())

    def last_words(self) -> str:
        """The last line that the program wrote."""
        lines = self._log.read_bytes().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "it wrote nothing"

    def wait_until_it_listens(self, most_s: float) -> None:
        """Wait for the line with the address; raises StartError if it does not come."""
        began = time.perf_counter()
        while (found := LISTENING.search(self._log.read_bytes())) is None:
            if self._process.poll() is not None:
                raise StartError(f"it ended at the start: {self.last_words()}")
            if time.perf_counter() - began > most_s:
                raise StartError(f"it was not ready after {most_s:.0f} s: {self.last_words()}")
            time.sleep(0.02)
        self.address, self.start_s = found[1].decode(), time.perf_counter() - began

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_S):
            self._sample()

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return []

    def _sample(self) -> None:
        memory = 0
        for process in self._processes():
            with suppress(psutil.Error):
                used = process.cpu_times()
                self._cpu_s[process.pid, process.create_time()] = used.user + used.system
                memory += process.memory_full_info().pss
        self.peak_memory_bytes = max(self.peak_memory_bytes, memory)

    def stop(self) -> None:
        """Ask the program to end, and kill whatever is left of it."""
        self._done.set()
        self._thread.join()
        self._sample()
        below = self._processes()
        with suppress(ProcessLookupError):
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        for process in below:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(below, STOP_S)
        self._process.wait()


@contextmanager
def running(command: list[str], log: Path) -> Iterator[Running]:
    """Start a program in a session of its own; it is stopped with the block, however that ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=ended_with_parent(signal.SIGTERM),
        )  # fmt: skip
    found = Running(process, log)
    try:
        yield found
    finally:
        found.stop()
