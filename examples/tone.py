"""Find a tone in a minute of sound, with segments that are appended, windowed and filtered.

Packets of 256 samples arrive, an accumulator appends them, windows of 16,384 samples that overlap
by half are cut from it, and a filter keeps the windows in which a tone sounds. The same is then
run under each of the four memory managers, which show the same and cost differently.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

import xstream as xs

RATE_HZ, SECONDS, PACKET, WINDOW = 44_100.0, 60, 256, 16_384
TONE_HZ, TONE_SECONDS = 1_000.0, ((9.0, 14.0), (31.0, 33.5), (50.0, 58.0))
BARS = " ▁▂▃▄▅▆▇█"


@dataclass
class Outcome:
    """The result of one run and its cost."""

    detected: list[tuple[float, float]]
    levels: list[float]
    seconds: float
    stats: xs.MemoryStats


def sound() -> npt.NDArray[np.float32]:
    """Generate noise with a tone in some places."""
    chance = np.random.default_rng(4)
    at = np.arange(int(RATE_HZ * SECONDS)) / RATE_HZ
    samples = chance.normal(0.0, 0.2, at.size)
    for begin, end in TONE_SECONDS:
        inside = (at >= begin) & (at < end)
        samples[inside] += 0.1 * np.sin(2 * np.pi * TONE_HZ * at[inside])
    return samples.astype(np.float32)


def packets(samples: npt.NDArray[np.float32], memory: xs.MemoryManager) -> Iterator[xs.SigSeg]:
    """Yield the signal in packets, as from a microphone."""
    timebase = xs.Timebase(rate_hz=RATE_HZ)
    for start in range(0, samples.size - PACKET + 1, PACKET):
        yield xs.SigSeg(samples[start : start + PACKET], start, timebase, memory)


def windows(stream: Iterator[xs.SigSeg]) -> Iterator[xs.SigSeg]:
    """Yield windows of 16,384 samples that overlap by half: append, cut, trim."""
    accumulator: xs.SigSeg | None = None
    for packet in stream:
        passed = packet.share()
        accumulator = passed if accumulator is None else accumulator.append(passed)
        while accumulator.width >= WINDOW:
            start = accumulator.start
            yield accumulator.subseg(start, WINDOW).share()
            step = WINDOW // 2
            accumulator = accumulator.subseg(start + step, accumulator.width - step)


def tone_level(window: xs.SigSeg, reference: npt.NDArray[np.complex64]) -> float:
    """Return the level of the tone in a window: one bin of a Fourier transform."""
    return float(abs(np.dot(np.asarray(window), reference))) / WINDOW


def run(samples: npt.NDArray[np.float32], memory: str) -> Outcome:
    """Find the tone with one memory manager."""
    manager = xs.memory_manager(memory)
    reference = np.exp(-2j * np.pi * TONE_HZ * np.arange(WINDOW) / RATE_HZ).astype(np.complex64)
    detected: list[tuple[float, float]] = []
    levels: list[float] = []
    begin = time.perf_counter()
    for window in windows(packets(samples, manager)):
        level = tone_level(window, reference)
        levels.append(level)
        if level > 0.025:
            since, until = window.time_of(window.start), window.time_of(window.stop)
            if detected and since <= detected[-1][1]:
                detected[-1] = (detected[-1][0], until)
            else:
                detected.append((since, until))
    return Outcome(detected, levels, time.perf_counter() - begin, manager.stats())


def sparkline(levels: list[float], columns: int) -> str:
    """Draw the levels as a line of bars."""
    parts = np.array_split(np.array(levels), columns)
    peaks = np.array([part.max() for part in parts])
    return "".join(BARS[int(peak / peaks.max() * (len(BARS) - 1))] for peak in peaks)


def comparison(outcomes: dict[str, Outcome]) -> Table:
    """Print time, copies (in MB, by reason), allocations and peak of each manager."""
    reasons = list(outcomes["refcount-lazy"].stats.copied_for)[:4]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("manager", no_wrap=True)
    for name in ("ms", *reasons, "blocks", "peak kB"):
        table.add_column(name, justify="right", no_wrap=True)
    for memory, outcome in outcomes.items():
        stats = outcome.stats
        table.add_row(
            memory,
            f"{outcome.seconds * 1e3:.0f}",
            *[f"{stats.copied_for[why] / 1e6:.0f}" for why in reasons],
            f"{stats.allocations:,}",
            f"{stats.peak_bytes / 1e3:.0f}",
        )
    return table


def main() -> None:
    """Print the demonstration."""
    console = Console()
    samples = sound()
    console.rule("xstream: a tone in a minute of noise", align="left")
    first = next(packets(samples, xs.memory_manager()))
    console.print(f"a packet      {first!r}", highlight=False, markup=False, soft_wrap=True)
    outcomes = {memory: run(samples, memory) for memory in xs.MANAGER_NAMES}
    shown = outcomes["refcount-lazy"]
    console.print(f"windows       {len(shown.levels):,} of {WINDOW:,} samples, overlapping by half")
    console.print(f"{TONE_HZ:.0f} Hz       {sparkline(shown.levels, 60)}", highlight=False)
    found = ", ".join(f"{since:.1f}-{until:.1f} s" for since, until in shown.detected)
    console.print(f"tone found    {found}", highlight=False)
    assert all(outcome.detected == shown.detected for outcome in outcomes.values())

    console.print("\nThe same under each memory manager, and the MB copied, by reason:")
    console.print(comparison(outcomes))
    pinned = outcomes["refcount-realloc"].stats.pinned_copies
    console.print(
        f"refcount-realloc copied {pinned:,} times because an array still looked into the block "
        "that should have grown.",
        highlight=False,
    )


if __name__ == "__main__":
    main()
