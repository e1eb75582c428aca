"""Runs one engine on one stream: feeds it, stamps its results on arrival, and samples its load."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from yabench.answers import Answer, answer_of, columns_of_arrow
from yabench.engines import Engine
from yabench.feed import feed, writes
from yabench.weather import Records

__all__ = ["Outcome", "run_engine"]

SAMPLE_S = 0.5
READY_S = 120.0
#: How long an engine may take to end after its input has ended.
END_S = 60.0
MOST_LINE_BYTES = 512 * 2**20


@dataclass
class Outcome:
    """What came of one run."""

    results: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    #: By how much the latest item was fed late, in ms of the stream.
    fed_late_ms: float = 0.0
    failure: str = ""

    def answers(self) -> list[Answer]:
        """Return the results as the judge takes them."""
        return [answer_of(result) for result in self.results]


class _Process:
    """An engine with the threads that read its output and sample its load."""

    def __init__(self, engine: Engine, task: Path, errors: IO[bytes]) -> None:
        self.process = subprocess.Popen(
            [*engine.command, str(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, start_new_session=True,
        )  # fmt: skip
        self.ready, self.ended = threading.Event(), threading.Event()
        #: When each result arrived, its line, and the Arrow stream behind it.
        self.lines: list[tuple[float, bytes, bytes]] = []
        self.samples: list[tuple[float, dict[str, float]]] = []
        self.threads = [
            threading.Thread(target=work, daemon=True) for work in (self._read, self._sample)
        ]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        output = self.process.stdout
        assert output is not None
        while line := output.readline(MOST_LINE_BYTES):
            body = output.read(_arrow_bytes(line)) if b'"arrow_bytes"' in line[:200] else b""
            now = time.monotonic()
            if not self.ready.is_set() and b'"ready"' in line:
                self.ready.set()
            elif line.strip():
                self.lines.append((now, line, body))
        self.ready.set()

    def _sample(self) -> None:
        """Sample memory, CPU and threads of the process and its children."""
        seen: dict[int, psutil.Process] = {}
        while not self.ended.wait(SAMPLE_S):
            with contextlib.suppress(psutil.Error):
                tree = psutil.Process(self.process.pid)
                for process in (tree, *tree.children(recursive=True)):
                    seen.setdefault(process.pid, process)
            total = {"rss_mb": 0.0, "cpu_percent": 0.0, "threads": 0.0}
            for process in list(seen.values()):
                try:
                    with process.oneshot():
                        total["rss_mb"] += process.memory_info().rss / 2**20
                        total["cpu_percent"] += process.cpu_percent()
                        total["threads"] += process.num_threads()
                except psutil.Error:
                    del seen[process.pid]
            if total["rss_mb"]:  # a process that has just ended has none
                self.samples.append((time.monotonic(), total))

    def end(self, patience_s: float) -> str:
        """Wait for the end; return what went wrong."""
        try:
            code = self.process.wait(patience_s)
            failure = f"it ended with exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            failure = f"it did not end within {patience_s:.0f} s after its input"
        self.stop()
        return failure

    def stop(self) -> None:
        """End the process and its children, if they still run, and the threads."""
        self.ended.set()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, 9)
        self.process.wait()
        for thread in self.threads:
            thread.join(5)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def run_engine(
    engine: Engine, task: dict[str, Any], records: Records, folder: Path, speed: float = 1.0
) -> Outcome:
    """Run an engine once; files of the run are kept in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path, log = folder / "task.json", folder / "engine.log"
    path.write_text(json.dumps(task, indent=1), encoding="utf-8")
    outcome = Outcome()
    with log.open("wb") as errors:
        process = _Process(engine, path, errors)
        try:
            start_s = _feed(process, engine, records, outcome, speed)
        except BaseException:
            process.stop()
            raise
    if outcome.failure:
        outcome.failure = f"{engine.name}: {outcome.failure}{_last_words(log)}"
    _collect(process, start_s, speed, outcome)
    return outcome


def _feed(
    process: _Process, engine: Engine, records: Records, outcome: Outcome, speed: float
) -> float:
    stdin = process.process.stdin
    assert stdin is not None
    with contextlib.suppress(OSError):  # an engine that has ended is noticed below
        prepared = writes(records, engine.form, stdin)
    process.ready.wait(READY_S)
    start_s = time.monotonic()
    if process.process.poll() is None and process.ready.is_set():
        try:
            outcome.fed_late_ms = feed(prepared, stdin, start_s, speed)
        except (BrokenPipeError, OSError):
            outcome.failure = "it ended before its input did"
    elif not process.ready.is_set():
        outcome.failure = f"it was not ready within {READY_S:.0f} s"
    failure = process.end(END_S if not outcome.failure else 1.0)
    outcome.failure = failure or outcome.failure
    return start_s


def _collect(process: _Process, start_s: float, speed: float, outcome: Outcome) -> None:
    """Turn what was read into results and samples with times of the stream."""
    for arrived, line, body in process.lines:
        arrival_ms = round((arrived - start_s) * 1000 * speed, 3)
        try:
            found = json.loads(line)
            if not isinstance(found, dict) or "arrow_file" in found:
                raise ValueError
            if found.pop("arrow_bytes", None) is not None:
                found["columns"] = columns_of_arrow(body)
            answer_of(found)
        except ValueError:
            outcome.failure = outcome.failure or (
                f"it wrote a line that is not a result: {line[:80].decode(errors='replace')!r}"
            )
            continue
        outcome.results.append({**found, "arrival_ms": arrival_ms})
    for sampled, load in process.samples:
        outcome.samples.append({"time_ms": round((sampled - start_s) * 1000 * speed), **load})


def _arrow_bytes(line: bytes) -> int:
    """Return the length of the Arrow stream that follows a line; 0 if it makes no sense."""
    try:
        size = json.loads(line)["arrow_bytes"]
    except (ValueError, KeyError, TypeError):
        return 0
    return size if isinstance(size, int) and 0 <= size <= MOST_LINE_BYTES else 0


def _last_words(log: Path) -> str:
    """Return the last line that an engine wrote to stderr; one that names an error, if any."""
    lines = log.read_bytes()[-4000:].decode(errors="replace").strip().splitlines()
    named = [line.strip() for line in lines if re.match(r"\s*(\w+\.)*\w*(Error|Exception)\b", line)]
    return f" ({(named or lines)[-1][:200]})" if lines else ""
