"""What every peer uses: its job, our kernels, timing and the answer. Requires only numpy."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np


class Job:
    """A job and its results so far."""

    def __init__(self) -> None:
        given = json.loads(sys.argv[1])
        self.benchmark: str = given["benchmark"]
        self.window: int = given["window"]
        self.operators: int = given["operators"]
        self.alpha: float = given["alpha"]
        self.beta: float = given["beta"]
        self.factor: float = given["factor"]
        self.samples = np.load(given["recording"])
        self._seconds: float = given["seconds"]
        self._trials: int = given["trials"]
        self._kernels = Path(given["kernels"])
        self._ways: list[dict[str, Any]] = []

    @property
    def windows(self) -> Any:
        """The recording in windows, one row per window."""
        return self.samples.reshape(-1, self.window)

    def kernels(self) -> ModuleType | None:
        """Return our numba kernels, or None without numba."""
        return load_kernels(str(self._kernels))

    def tests(self) -> dict[str, tuple[Callable[[Any], bool], Callable[[Any], bool]]]:
        """Return the two predicates of a window, with numpy and with our kernels."""
        alpha, beta = self.alpha, self.beta
        if self.benchmark == "silencefilter":
            beta = np.inf
        ways: dict[str, tuple[Callable[[Any], bool], Callable[[Any], bool]]] = {
            "numpy": (
                lambda window: bool(window.std(dtype=np.float64) > alpha),
                lambda window: bool(window.mean(dtype=np.float64) < beta),
            )
        }
        kernels = self.kernels()
        if kernels is not None:
            deviation, mean = kernels.deviation, kernels.mean
            ways["our numba kernels"] = (
                lambda window: bool(deviation(window) > alpha),
                lambda window: bool(mean(window) < beta),
            )
        return ways

    def measure(
        self, name: str, check: Callable[[], Any], work: Callable[[int], None], most: int = 1 << 16,
        passes: int = 1,
    ) -> None:  # fmt: skip
        """Check one pass (`check` returns its samples), then time `work(repetitions)`.

        A repetition makes `passes` passes over the recording; a trial has at most `most` of them.
        """
        out = np.ascontiguousarray(check(), np.float32)
        times, took = 1, _timed(work, 1)
        while took < self._seconds / 4 and times < most:
            times *= 4
            took = _timed(work, times)
        times = max(1, min(most, round(times * self._seconds / took)))
        samples = len(self.samples) * passes * times
        speeds = [samples / _timed(work, times) for _ in range(self._trials)]
        self._ways.append({
            "name": name,
            "samples_per_second": speeds,
            "digest": hashlib.sha256(out.tobytes()).hexdigest(),
        })  # fmt: skip

    def answer(self, version: str) -> None:
        """Print the results for the process that started this one."""
        print(json.dumps({"version": version, "ways": self._ways}))


def load_kernels(path: str) -> ModuleType | None:
    """Load the kernels of a file; return None without numba."""
    try:
        spec = importlib.util.spec_from_file_location("_statistics", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


def _timed(work: Callable[[int], None], times: int) -> float:
    begin = perf_counter()
    work(times)
    return perf_counter() - begin
