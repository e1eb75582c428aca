"""Recordings: a header and one frame per line, as JSON, in a file that may be cut off anywhere.

The first line of a run is its header (`xstream_live` is the version of the format), each further
one a frame with the updates of panels. A file may hold several runs, one after another. Frames are
absolute, so that a reader can begin at any of them.
"""

from __future__ import annotations

import bisect
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from xstream.console import check_output_file
from xstream.errors import InputError
from xstream.live.feed import Event, History, Layouts
from xstream.live.frames import VERSION, encoded
from xstream.live.panels import merged

__all__ = ["Recorder", "Recording"]

#: The moments of a recording that curves are drawn from.
CURVE_MOMENTS = 600


class Recorder:
    """Writes the frames of runs to a file; stops with one sentence if the disk is full."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        check_output_file(path)
        self._path, self._say = path, say
        self._file: Any = path.open("wb")

    def header(self, header: Mapping[str, Any]) -> None:
        """Begin a run."""
        self._write(encoded(header))

    def frame(self, frame: Mapping[str, Any], panels: Mapping[str, Any]) -> None:
        """Add a frame."""
        self._write(encoded({**frame, "panels": panels} if panels else frame))

    def _write(self, line: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line + b"\n")
            self._file.flush()
        except OSError as error:
            file, self._file = self._file, None
            self._say(f"the recording {self._path} ends here: {error.strerror}")
            with suppress(OSError):  # which is the same error
                file.close()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._say(f"the recording {self._path} is incomplete: {error.strerror}")


class Recording:
    """A recorded run: the feed of a page that replays it.

    Only the places of frames in the file are kept in memory. The end may be cut off, and damaged
    lines are left out. `run` is the number of the run in the file, from 1; None: the last.
    """

    def __init__(self, path: str | Path, run: int | None = None) -> None:
        self.path = path = Path(path)
        try:
            runs = _runs(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        if not runs:
            raise InputError(f"{path} is not a recording of a live view: it has no header")
        if run is not None and not 1 <= run <= len(runs):
            raise InputError(f"{path} has {len(runs)} runs: --run is from 1 to {len(runs)}")
        self.runs = len(runs)
        self.header, self._places, self._times = runs[-1 if run is None else run - 1]
        if not self._places:
            raise InputError(f"{path} has no frame of the run: the recording was cut off before")
        self._layouts = Layouts(self.header)

    @property
    def frames(self) -> int:
        """The number of frames."""
        return len(self._places)

    @property
    def seconds(self) -> tuple[float, float]:
        """The time of the first and of the last frame."""
        return self._times[0], self._times[-1]

    def frame(self, number: int) -> dict[str, Any]:
        """A frame, with the updates of panels."""
        with self.path.open("rb") as file:
            file.seek(self._places[number])
            found: dict[str, Any] = json.loads(file.readline())
            return found

    def opening(self, flow: str) -> dict[str, Any]:
        """What a page begins with; it asks for frames from the beginning."""
        history = self._history()
        return {
            "header": self._layouts(flow), "frame": None, "panels": {}, "totals": history.totals(),
            "replay": {"from": self._times[0], "to": self._times[-1]},
        }  # fmt: skip

    def curves(self, operator: int) -> dict[str, Any]:
        """The whole time of an operator."""
        return self._history().curves(operator)

    def _history(self) -> History:
        history = History(self.header)
        step = max(1, len(self._places) // CURVE_MOMENTS)
        with self.path.open("rb") as file:
            for place in self._places[::step]:
                file.seek(place)
                history.add(json.loads(file.readline()))
        return history

    def events(
        self, at_s: float, speed: float, patience_s: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Event | None]:  # fmt: skip
        """The frames from a time on, at a multiple of the speed at which they were recorded."""
        start = max(bisect.bisect_right(self._times, at_s) - 1, 0)
        with self.path.open("rb") as file:
            panels = self._panels_before(file, start)
            file.seek(self._places[start])
            if panels:
                yield Event("panels", encoded(panels))
            before = self._times[start]
            for number in range(start, len(self._places)):
                pause_s = (self._times[number] - before) / speed
                before = self._times[number]
                while pause_s > 0:  # long ones in pieces, to notice that the page is gone
                    sleep(min(pause_s, patience_s))
                    pause_s -= patience_s
                    if pause_s > 0:
                        yield None
                file.seek(self._places[number])
                frame = json.loads(file.readline())
                if updates := frame.pop("panels", None):
                    yield Event("panels", encoded(updates))
                yield Event("frame", encoded(frame))

    def _panels_before(self, file: Any, start: int) -> dict[str, dict[str, Any]]:
        """The state of the panels before a frame; the lines with updates say so in their text."""
        state: dict[str, dict[str, Any]] = {}
        for place in self._places[:start]:
            file.seek(place)
            line = file.readline()
            if b'"panels":{' in line:
                merged(state, json.loads(line)["panels"])
        return state


def _runs(path: Path) -> list[tuple[dict[str, Any], list[int], list[float]]]:
    """By run: the header, and places and times of frames."""
    found: list[tuple[dict[str, Any], list[int], list[float]]] = []
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        place = 0
        for line in file:
            here, place = place, place + len(line)
            if not line.endswith(b"\n") and place >= size:
                break  # cut off, or still being written
            value = _parsed(line)
            if value is None:
                continue
            if "xstream_live" in value:
                _check_version(path, value)
                found.append((value, [], []))
            elif found and _fits(value, found[-1]):
                found[-1][1].append(here)
                found[-1][2].append(float(value["t"]))
    return found


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _fits(frame: dict[str, Any], run: tuple[dict[str, Any], list[int], list[float]]) -> bool:
    """Whether a frame is whole, and not before the last one."""
    header, _, times = run
    try:
        shapes = len(frame["busy"]), len(frame["waiting"]), len(frame["counters"])
        t = float(frame["t"])
        wanted = len(header["nodes"]), len(header["edges"]), len(header["columns"])
        return shapes == wanted and "memory" in frame and (not times or t >= times[-1])
    except (KeyError, TypeError, ValueError):
        return False


def _check_version(path: Path, header: Mapping[str, Any]) -> None:
    if header["xstream_live"] != VERSION:
        raise InputError(
            f"{path} has version {header['xstream_live']} of the format, and this xstream reads "
            f"version {VERSION}"
        )
