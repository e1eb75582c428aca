"""What a run shows while it runs."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from xstream.console import Progress
from xstream.console.live import Live


@dataclass
class Figures:
    """A run that is still being loaded, unless something else is said."""

    rows: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    stream_seconds: int = 0
    lag_s: float = 0.0
    idle_s: float = 0.0
    first_late: str | None = None


def test_a_run_shows_its_share_of_the_stream_and_the_time_left() -> None:
    now, said = [0.0], io.StringIO()
    live = Live(True, 900, Progress("run", 900, "second", stream=said, clock=lambda: now[0]))
    live(Figures())  # everything is still being loaded
    now[0] = 100.0
    live(Figures(rows=1))
    said.truncate(said.seek(0))
    now[0] = 110.0
    live(Figures(rows=1000, answers={"tolls": 7}, stream_seconds=45, lag_s=2.0))
    behind, line = said.getvalue().splitlines()
    assert behind == "falling behind: second 45 is 2.0 stream seconds late"
    assert line.startswith("run: second 45 of 900 (5 %), about 3 min left, lag 2.0 s, ")
    assert ", 7 answers, " in line


def test_a_late_answer_and_a_long_wait_are_said_once() -> None:
    said = io.StringIO()
    live = Live(True, None, Progress("run", stream=said))
    for _ in range(3):
        live(Figures(rows=1, stream_seconds=9, idle_s=7200.0, first_late="second 8: too slow"))
    assert said.getvalue().splitlines() == [
        "too late: second 8: too slow",
        "after second 9 the next rows are due in 2 hours; Ctrl-C ends the run here",
    ]
