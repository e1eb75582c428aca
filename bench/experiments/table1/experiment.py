"""Table I: the mini-benchmarks, with one tuple per sample and on the engines that are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xstream.bench import table1
from xstream.bench.experiment import Experiment, Finding, Plot, Row, Scale, summary
from xstream.bench.loading import PAPERS_SECONDS, loading
from xstream.bench.phrases import listed
from xstream.bench.report import Figure
from xstream.bench.settings import Settings

LOADING = "FILE LOADING"
BENCHMARKS = {
    LOADING: loading,
    "PASSCHAIN": table1.passchain,
    "STATFILTER": table1.statfilter,
    "SILENCEFILTER": table1.silencefilter,
}
NOSIGSEG = "NoSigSeg, one tuple per sample"
SEGMENTS = "xstream, segments"
#: Samples per second in the paper: Commercial, Borealis, XStream, XStream-NoSigSeg.
PAPER = {
    "PASSCHAIN": (177.7e3, 5.47e3, 71.4e6, 92.8e3),
    "STATFILTER": (72.7e3, 7.05e3, 97.6e6, 57.9e3),
    "SILENCEFILTER": (4.58e3, 142.8, 64.5e6, 75.1e3),
}


def measure(scale: Scale) -> Iterator[Row]:
    """Each benchmark with its contenders in alternation, then the other engines."""
    for name, run in BENCHMARKS.items():
        if name in scale.finished:
            continue
        settings = Settings(
            trials=scale.trials, seconds=scale.seconds, megabytes=256.0 if scale.full else 0.0,
            peers=scale.peers, clock=scale.clock, progress=scale.progress,
        )  # fmt: skip
        scale.progress.begin(None, f"{name}, preparation")
        report = run(settings)
        for place, result in enumerate(report.results):
            for number, trial in enumerate(result.trials):
                yield {
                    "benchmark": name, "engine": result.name, "first": place == 0,
                    "window": settings.window, "scheduler": settings.scheduler,
                    "memory": settings.memory, "trial": number, "samples": trial.samples,
                    "samples_per_second": trial.samples_per_second,
                    "loading_seconds": trial.loading_seconds,
                }  # fmt: skip


def find(rows: Sequence[Row]) -> Finding:
    """Gains over single samples and over the best of the other engines."""
    speeds = summary(rows, ["benchmark", "engine"])
    first = {row["benchmark"]: row["engine"] for row in rows if row["first"]}
    ours = ("xstream", "NoSigSeg", "bare")
    figures, told = [], []
    for name, (commercial, _, segments, single) in PAPER.items():
        best = speeds[name, first[name]][0]
        gain = best / speeds[name, NOSIGSEG][0]
        paper = f"paper {segments / single:,.0f}"
        figures.append(Figure(f"{name}, segments over NoSigSeg ({paper})", gain, "times"))
        peers = {
            engine: mean
            for (benchmark, engine), (mean, _) in speeds.items()
            if benchmark == name and not engine.startswith(ours)
        }
        if peers:
            peer = max(peers, key=lambda engine: peers[engine])
            what = f"{name}, over {peer} (paper, over Commercial: {segments / commercial:,.0f})"
            figures.append(Figure(what, best / peers[peer], "times"))
            told.append(f"{peer} in {name}")
    table = [
        (name, engine, f"{mean / 1e6:,.4g}", f"{half / 1e6:,.2g}")
        for (name, engine), (mean, half) in speeds.items()
    ]
    seconds = _loading_seconds(rows)
    figures += [
        Figure(f"{LOADING}, segments (paper {PAPERS_SECONDS[2]:g})", seconds[SEGMENTS], "s"),
        Figure(f"{LOADING}, NoSigSeg (paper {PAPERS_SECONDS[3]:g})", seconds[NOSIGSEG], "s"),
    ]
    others = f"The fastest other engines are {', '.join(told)}." if told else (
        "Other engines were not measured: `--peers` measures those that are installed "
        "(`make bench-peers` installs them), by the wall clock."
    )  # fmt: skip
    text = _text(speeds, first, seconds, others, rows[0]["window"])
    return Finding(figures, ("benchmark", "engine", "Msamples/s", "± 95 %"), table, text)


def _text(
    speeds: Mapping[tuple[Any, ...], tuple[float, float]],
    first: Mapping[str, str],
    seconds: Mapping[str, float],
    others: str,
    window: int,
) -> str:
    """The conclusions from the mean speeds and the loading times."""
    gains = {name: speeds[name, first[name]][0] / speeds[name, NOSIGSEG][0] for name in PAPER}
    behind = [name for name, gain in gains.items() if gain <= 1]
    least = min(gains, key=lambda name: gains[name])
    order = (
        f"Segments are ahead of one tuple per sample in all three, as in the paper, by a factor of at least {gains[least]:,.0f} ({least})."
        if not behind
        else f"Unlike in the paper, segments are not ahead of one tuple per sample in {listed(behind)}."
    )
    ratio = seconds[NOSIGSEG] / seconds[SEGMENTS]
    parsing = (
        "Most of the time is spent parsing, in blocks in both cases, so the difference is small."
        if ratio < 2
        else f"One tuple per sample takes {ratio:.1f} times as long."
    )
    hop, passed = speeds["PASSCHAIN", NOSIGSEG][0], speeds["PASSCHAIN", first["PASSCHAIN"]][0]
    segments, single = PAPER["PASSCHAIN"][2:]
    return f"""
{order} {others}

Reading the recording from a CSV file takes {seconds[SEGMENTS]:.3f} s into segments and {seconds[NOSIGSEG]:.3f} s into one tuple per sample, where the paper's XStream took
{PAPERS_SECONDS[2]:g} and {PAPERS_SECONDS[3]:g} s, its commercial engine {PAPERS_SECONDS[0]:g} s and Borealis {PAPERS_SECONDS[1]:g} s. {parsing} As in the paper, loading is not part of the
other rows: their recording is in memory before the clock starts.

In PASSCHAIN, NoSigSeg passes {hop / 1e6:,.1f} million samples/s through ten operators and the paper's {single / 1e6:,.2f} ({hop / single:,.0f} times as many);
segments reach {passed / 1e6:,.0f} million and the paper's {segments / 1e6:,.1f} ({passed / segments:,.0f} times as many). A hop through a function pointer takes a few nanoseconds. The
gain of segments is {gains["PASSCHAIN"]:,.0f} times with windows of {window:,} samples, because each hop passes a window instead of a sample. It is
{gains["STATFILTER"]:,.0f} times in STATFILTER and {gains["SILENCEFILTER"]:,.0f} times in SILENCEFILTER, where every sample is processed.
"""


def _loading_seconds(rows: Sequence[Row]) -> dict[str, float]:
    """The fastest loading of each engine."""
    found: dict[str, float] = {}
    for row in rows:
        if row["benchmark"] == LOADING:
            took = row["samples"] / row["samples_per_second"]
            found[row["engine"]] = min(found.get(row["engine"], took), took)
    return found


EXPERIMENT = Experiment(
    "table1",
    "Table I: mini-benchmarks with segments, without them, and on other engines",
    """
Samples per second of XStream, XStream without segments, a commercial engine and Borealis (section IV.A). PASSCHAIN: 71.4
million, 92.8 thousand, 177.7 thousand, 5.5 thousand. STATFILTER: 97.6 million, 57.9 thousand, 72.7 thousand, 7.1 thousand.
SILENCEFILTER: 64.5 million, 75.1 thousand, 4.6 thousand, 143. XStream outperforms the commercial engine by factors of more than 400 in
passing, 1,340 in windows and statistics, and 14,000 in joins on time.
""",
    measure,
    tuple(
        Plot(
            name,
            "engine",
            "samples_per_second",
            ("benchmark",),
            "Msamples/s",
            "",
            {"benchmark": name},
            kind="bars",
            log_y=True,
            scale=1e-6,
        )
        for name in BENCHMARKS
    ),
    find,
    part="benchmark",
)
