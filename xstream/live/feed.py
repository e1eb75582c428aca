"""The frames of a run for the pages: the last one, and the past minutes in bounded memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from xstream.live.frames import encoded, with_layout
from xstream.live.panels import merged
from xstream.snapshot import BUSY, EMITTED, SAMPLES, TUPLES

__all__ = ["ENDED", "Event", "Feed", "History", "Layouts", "RunFeed"]

#: The memory for the past of a run, and the most moments that are kept of it.
HISTORY_BYTES, HISTORY_MOMENTS = 32 << 20, 1200
#: The most panel updates that are kept for a page that is behind; then it gets all of the state.
KEPT_UPDATES = 64
#: The most pages that the end of a run waits for because they have just been opened.
KEPT_OPENINGS = 64
#: Phases of a run that is over.
ENDED = ("done", "stopped", "suspended", "failed", "interrupted")


class Event(NamedTuple):
    """What is sent to a page: a kind, and JSON in one line."""

    kind: str
    data: bytes


class Feed(Protocol):
    """Where the pages have their frames from: a run, or a recording."""

    def opening(self, flow: str) -> dict[str, Any]:
        """The header with the layout, the last frame, the panels, and totals of the past."""

    def curves(self, operator: int) -> dict[str, Any]:
        """The past of an operator."""

    def events(self, at_s: float, speed: float, patience_s: float) -> Iterator[Event | None]:
        """The frames from now on; None if there was none for a while. Ends with the run."""


class _Moment(NamedTuple):
    t: float
    counters: NDArray[np.int64]
    busy: NDArray[np.float32]
    waiting: NDArray[np.int64]
    live: int
    process: int


class History:
    """The past of a run: exact for the last minutes, with longer steps before."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self._sources = np.array([kind == "source" for _, kind in header["nodes"]], bool)
        self._targets = np.array([edge[1] for edge in header["edges"]], np.int64)
        bytes_per_moment = 64 * len(header["nodes"]) + 200
        self._half = max(8, min(HISTORY_MOMENTS, HISTORY_BYTES // bytes_per_moment) // 2)
        #: Every `stride`-th moment of the past, and all of the last ones.
        self._past: list[_Moment] = []
        self._recent: deque[_Moment] = deque()
        self._stride, self._aged = 1, 0

    def add(self, frame: Mapping[str, Any]) -> None:
        """Add a frame; the past is thinned out evenly when there are too many."""
        waiting = np.zeros(len(self._sources), np.int64)
        np.add.at(waiting, self._targets, np.array(frame["waiting"], np.int64))
        counters = np.array(frame["counters"], np.int64)
        memory = frame["memory"]
        self._recent.append(
            _Moment(
                frame["t"], counters, np.array(frame["busy"], np.float32), waiting, memory["live"],
                memory["process"],
            )
        )  # fmt: skip
        if len(self._recent) > self._half:
            oldest = self._recent.popleft()
            if self._aged % self._stride == 0:
                self._past.append(oldest)
            self._aged += 1
        if len(self._past) > self._half:
            self._past = self._past[::2]
            self._stride *= 2

    def totals(self) -> dict[str, list[Any]]:
        """By moment: samples of all sources per second, bytes of segments and of the process."""
        moments = [*self._past, *self._recent]
        admitted = [int(each.counters[SAMPLES][self._sources].sum()) for each in moments]
        return {
            "t": [each.t for each in moments[1:]],
            "samples": _rates(moments, admitted),
            "live": [each.live for each in moments[1:]],
            "process": [each.process for each in moments[1:]],
        }

    def curves(self, operator: int) -> dict[str, list[Any]]:
        """By moment: what an operator did per second, its busy share, and its waiting tuples."""
        moments = [*self._past, *self._recent]

        def rates(column: int) -> list[float]:
            return _rates(moments, [int(each.counters[column][operator]) for each in moments])

        busy = rates(BUSY)
        return {
            "t": [each.t for each in moments[1:]],
            "busy": [round(min(share / 1e9, 1.0), 4) for share in busy],
            "tuples": rates(TUPLES),
            "samples": rates(SAMPLES),
            "emitted": rates(EMITTED),
            "waiting": [int(each.waiting[operator]) for each in moments[1:]],
        }


def _rates(moments: list[_Moment], values: list[int]) -> list[float]:
    return [
        round(max(values[i] - values[i - 1], 0) / max(moments[i].t - moments[i - 1].t, 1e-9), 1)
        for i in range(1, len(moments))
    ]


class Layouts:
    """The header of a run with its layout, made when a page asks for it: it takes a second for a
    thousand operators."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self._header, self._lock = header, threading.Lock()
        self._made: dict[str, dict[str, Any]] = {}

    def __call__(self, flow: str) -> dict[str, Any]:
        """The header for a direction of the streams: down or right."""
        flow = "right" if flow == "right" else "down"
        with self._lock:
            if flow not in self._made:
                self._made[flow] = with_layout(self._header, flow)
            return self._made[flow]


class RunFeed:
    """The frames of a run under way, for any number of pages.

    A page that reads slowly misses frames, and never holds up the others or the run.
    """

    def __init__(self, header: dict[str, Any]) -> None:
        self.header = header
        self._history = History(header)
        self._panels: dict[str, dict[str, Any]] = {}
        self._last: dict[str, Any] | None = None
        self._data = b"{}"
        self._number = 0
        self._updates: deque[tuple[int, Mapping[str, Any]]] = deque(maxlen=KEPT_UPDATES)
        self._changed = threading.Condition()
        self._layouts = Layouts(header)
        self._readers = 0
        #: When pages got their opening that have not asked for events yet.
        self._opened: deque[float] = deque(maxlen=KEPT_OPENINGS)

    def push(self, frame: dict[str, Any], panels: Mapping[str, Any]) -> None:
        """Add a frame and the updates of panels."""
        data = encoded(frame)
        with self._changed:
            self._history.add(frame)
            merged(self._panels, panels)
            self._last, self._data = frame, data
            self._number += 1
            if panels:
                self._updates.append((self._number, panels))
            self._changed.notify_all()

    @property
    def over(self) -> bool:
        """Whether the last frame is that of the end."""
        return self._last is not None and self._last["phase"] in ENDED

    def wait_for_readers(self, seconds: float) -> None:
        """Wait until all pages that are open have the last frame.

        A page that got its opening within the last `seconds` is about to ask for events.
        """
        with self._changed:
            oldest = time.monotonic() - seconds
            self._opened = deque((each for each in self._opened if each > oldest), KEPT_OPENINGS)
            self._changed.wait_for(lambda: not (self._readers or self._opened), seconds)

    def opening(self, flow: str) -> dict[str, Any]:
        """What a page begins with."""
        with self._reading():
            placed = self._layouts(flow)
            with self._changed:
                self._opened.append(time.monotonic())
        with self._changed:
            panels = {
                name: {
                    key: list(value) if key == "columns" else value for key, value in own.items()
                }
                for name, own in self._panels.items()
            }
            return {
                "header": placed, "frame": self._last, "panels": panels,
                "totals": self._history.totals(), "replay": None,
            }  # fmt: skip

    def curves(self, operator: int) -> dict[str, Any]:
        """The past of an operator."""
        with self._changed:
            return self._history.curves(operator)

    def events(self, at_s: float, speed: float, patience_s: float) -> Iterator[Event | None]:
        """The frames from now on; both times are for recordings."""
        seen = 0
        with self._reading():
            with self._changed:
                if self._opened:
                    self._opened.popleft()
            while True:
                with self._changed:
                    fresh = self._changed.wait_for(lambda: self._number != seen, patience_s)  # noqa: B023
                    data, over = self._data, self.over
                    found = self._new_panels(seen)
                    seen = self._number
                if not fresh:
                    yield None
                    continue
                if found:
                    yield Event("panels", encoded(found))
                yield Event("frame", data)
                if over:
                    return

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Count a page that is being answered."""
        with self._changed:
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def _new_panels(self, seen: int) -> dict[str, dict[str, Any]]:
        """The updates of panels since a frame; everything if they are no longer known."""
        found: dict[str, dict[str, Any]] = {}
        complete = len(self._updates) < KEPT_UPDATES or self._updates[0][0] <= seen + 1
        if not complete or not seen:
            merged(found, self._panels)
            return found
        for number, updates in self._updates:
            if number > seen:
                merged(found, updates)
        return found
