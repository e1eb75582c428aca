"""`--watch`: the live view in the terminal, drawn with rich; plain lines where there is none."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from xstream.live.feed import ENDED

__all__ = ["TerminalView", "short"]

#: Seconds between two lines where the output is no terminal.
LINE_EVERY_S = 5.0
#: Lines of the terminal beside the operators.
_BESIDE = 7
_BAR = 12
#: Colours of pressure: the share from which each applies.
_HEAT = ((0.85, "bold red"), (0.5, "yellow"), (0.0, "green"))


def short(value: float, unit: str = "") -> str:
    """Return a number in three digits.

    >>> short(0), short(1_234_567, "B"), short(12.25)
    ('0', '1.23 MB', '12.2')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{_digits(value / size)} {letter}{unit}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if value == int(value) or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


class TerminalView:
    """Draws frames on stderr: the busiest operators, and the state of the run."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live: Any = None
        self._before: list[Mapping[str, Any]] = []
        self._header: Mapping[str, Any] | None = None
        self._line_at = 0.0
        self._panels: dict[str, Mapping[str, Any]] = {}

    def show(
        self, header: Mapping[str, Any], frame: Mapping[str, Any], panels: Mapping[str, Any]
    ) -> None:
        """Show a frame."""
        if header is not self._header:
            self._header, self._before, self._line_at = header, [], 0.0
        self._panels |= panels
        while len(self._before) > 1 and frame["t"] - self._before[1]["t"] >= 1.0:
            del self._before[0]
        first = self._before[0] if self._before else frame
        self._before.append(frame)
        over = frame["phase"] in ENDED
        if self._stream.isatty():
            self._draw(header, first, frame)
        elif over or frame["t"] >= self._line_at:
            self._line_at = frame["t"] + LINE_EVERY_S
            print(self.line(header, first, frame), file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def line(
        self, header: Mapping[str, Any], first: Mapping[str, Any], last: Mapping[str, Any]
    ) -> str:
        """Return a frame in one line."""
        busy = last["busy"]
        most = max(range(len(busy)), key=busy.__getitem__, default=None)
        busiest = (
            f", busiest {header['nodes'][most][0]} {busy[most]:.0%}" if most is not None else ""
        )
        told = f": {last['message']}" if last.get("message") else ""
        return (
            f"{header['query']}: {last['phase']} at {last['t']:.1f} s, "
            f"{short(_admitted(header, first, last))} samples/s, "
            f"{short(sum(last['waiting']))} waiting{busiest}, "
            f"segments {short(last['memory']['live'], 'B')}, "
            f"process {short(last['memory']['process'], 'B')}{told}"
        )

    def _draw(
        self, header: Mapping[str, Any], first: Mapping[str, Any], last: Mapping[str, Any]
    ) -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.table import Table
        from rich.text import Text

        if self._live is None:
            console = Console(file=self._stream)
            # Drawn only in `show`: a thread that draws would disturb the run.
            self._live = Live(console=console, auto_refresh=False)
            self._live.start()
        room = max(self._live.console.height - _BESIDE - len(self._delays()), 3)
        table = Table(box=None, expand=True, pad_edge=False)
        table.add_column("operator", ratio=3, no_wrap=True, overflow="ellipsis")
        table.add_column("busy share", justify="right", no_wrap=True, min_width=_BAR + 5)
        for name in ("tuples/s", "samples/s", "waiting", "tuples"):
            table.add_column(name, justify="right", no_wrap=True, ratio=1)
        rows = _rows(header, first, last)
        for name, busy, tuples, samples, waiting, total in rows[:room]:
            filled = round(busy * _BAR)
            heat = next(style for share, style in _HEAT if busy >= share)
            bar = Text(f"{busy:.0%} ", justify="right").append("█" * filled, heat)
            bar.append("░" * (_BAR - filled), "dim")
            table.add_row(
                Text(name), bar, short(tuples), short(samples), short(waiting), f"{total:,}"
            )
        more = len(rows) - room
        lines: list[Any] = [Text(self.line(header, first, last), style="bold"), table]
        if more > 0:
            lines.append(Text(f"and {more:,} more operators", style="dim"))
        lines += [Text(line, no_wrap=True) for line in self._delays()]
        self._live.update(Group(*lines), refresh=True)

    def _delays(self) -> list[str]:
        """Delays against limits, of the panels that have any."""
        return [
            f"{name}: median {p50} s, 99 % {p99} s, worst {worst} s, limit {limit} s"
            + (f", {late:,} late" if late else "")
            for update in self._panels.values()
            for name, p50, p99, worst, limit, late in update.get("rows", ())
        ]


def _admitted(
    header: Mapping[str, Any], first: Mapping[str, Any], last: Mapping[str, Any]
) -> float:
    sources = [i for i, (_, kind) in enumerate(header["nodes"]) if kind == "source"]
    samples = header["columns"].index("samples")
    moved = float(
        sum(last["counters"][samples][i] - first["counters"][samples][i] for i in sources)
    )
    seconds: float = max(last["t"] - first["t"], 1e-9)
    return moved / seconds


def _rows(
    header: Mapping[str, Any], first: Mapping[str, Any], last: Mapping[str, Any]
) -> Sequence[tuple[str, float, float, float, int, int]]:
    """By operator: name, busy share, tuples/s, samples/s, waiting tuples, tuples; busiest first."""
    seconds: float = max(last["t"] - first["t"], 1e-9)
    waiting = [0] * len(header["nodes"])
    for edge, queued in zip(header["edges"], last["waiting"], strict=True):
        waiting[edge[1]] += queued
    tuples, samples = header["columns"].index("tuples"), header["columns"].index("samples")

    def rate(column: int, i: int) -> float:
        moved: float = last["counters"][column][i] - first["counters"][column][i]
        return moved / seconds

    rows = [
        (name, last["busy"][i], rate(tuples, i), rate(samples, i), waiting[i],
         int(last["counters"][tuples][i]))
        for i, (name, _) in enumerate(header["nodes"])
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row[1])
