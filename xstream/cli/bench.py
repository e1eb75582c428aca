"""`xstream bench`: the command line of the benchmarks in `xstream.bench`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.cli import bench_history
from xstream.console import Progress, interrupted_with, within
from xstream.console.groups import grouped

if TYPE_CHECKING:
    from xstream.bench.report import Report
    from xstream.bench.settings import Settings

__all__ = ["add_applications", "app"]

app = typer.Typer(
    help="Run a benchmark of the paper or of an application and print its figures.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Scheduler = Annotated[str, typer.Option(help="fifo, fifo-slice, rtc or df.")]
Memory = Annotated[
    str, typer.Option(help="copy-always, refcount-copy, refcount-realloc or refcount-lazy.")
]
Window = Annotated[int, typer.Option(help="Samples per window.", callback=within(1, 2**20))]
Trials = Annotated[
    int,
    typer.Option(
        help="Trials of each contender; contenders take turns.", callback=within(1, 10_000)
    ),
]
Seconds = Annotated[
    float, typer.Option(help="Approximate length of a trial.", callback=within(0.0001, 60))
]
Samples = Annotated[
    int | None,
    typer.Option(
        help="Samples per trial, instead of --seconds.",
        show_default=False,
        callback=within(1, 10**12),
    ),
]
Input = Annotated[
    Path | None, typer.Option(help="Sound file to use instead of the generated recording.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Kind = Annotated[
    str, typer.Option(help="Implementation of the operators: library, kernel or python.")
]
Operators = Annotated[
    int, typer.Option(help="Number of operators in the chain.", callback=within(1, 10_000))
]
Peers = Annotated[
    bool, typer.Option("--peers", help="Also run the benchmark on other stream engines.")
]
Clock = Annotated[
    str,
    typer.Option(
        help="Clock of the measurement: wall, or processor (CPU time, for a busy machine)."
    ),
]
Alpha = Annotated[
    float,
    typer.Option(
        help="Keep windows whose standard deviation is above this.", callback=within(-1e9, 1e9)
    ),
]
Beta = Annotated[
    float,
    typer.Option(help="Keep windows whose mean is below this.", callback=within(-1e9, 1e9)),
]

Megabytes = Annotated[
    float,
    typer.Option(
        help="Also measure a recording of this size; 0 measures in cache only.",
        callback=within(0, 512),
    ),
]


@dataclass(frozen=True)
class Contest:
    """How the contenders run, and how often."""

    scheduler: Scheduler = "df"
    memory: Memory = "refcount-lazy"
    window: Window = 4096
    trials: Trials = 9
    clock: Clock = "wall"


@dataclass(frozen=True)
class LargeWindows(Contest):
    """The same with windows as files have them."""

    window: Window = 65_536


@dataclass(frozen=True)
class Timed(Contest):
    """Trials over a recording, of a given length."""

    seconds: Seconds = 0.1
    samples: Samples = None
    input: Input = None


@dataclass(frozen=True)
class SmallWindows(Timed):
    """The same with windows that cost more to pass than to read."""

    window: Window = 64


@dataclass(frozen=True)
class Schedulers(Timed):
    """The same under all schedulers."""

    scheduler: Annotated[str, typer.Option(help="fifo, fifo-slice, rtc, df, or all.")] = "all"


@app.command()
@grouped
def passchain(
    timed: Timed,
    kind: Kind = "library",
    operators: Operators = 10,
    peers: Peers = False,
    json: Json = False,
) -> None:
    """Measure the cost of passing data: ten operators that pass their input on."""
    from xstream.bench import table1

    _measure(
        table1.passchain,
        "passchain",
        json,
        **vars(timed),
        kind=kind,
        operators=operators,
        peers=peers,
    )


@app.command()
@grouped
def statfilter(
    timed: Timed,
    kind: Kind = "library",
    megabytes: Megabytes = 256.0,
    alpha: Alpha = 0.02,
    beta: Beta = 0.001,
    peers: Peers = False,
    json: Json = False,
) -> None:
    """Measure two filters over windows, compared with a numba loop with the same arithmetic."""
    from xstream.bench import table1

    _measure(
        table1.statfilter,
        "statfilter",
        json,
        **vars(timed),
        kind=kind,
        megabytes=megabytes,
        alpha=alpha,
        beta=beta,
        peers=peers,
    )


@app.command()
@grouped
def silencefilter(
    timed: Timed,
    alpha: Alpha = 0.02,
    beta: Beta = 0.001,
    peers: Peers = False,
    json: Json = False,
) -> None:
    """Measure a stream that is joined with the ranges in which a voice was detected."""
    from xstream.bench import table1

    _measure(
        table1.silencefilter,
        "silencefilter",
        json,
        **vars(timed),
        alpha=alpha,
        beta=beta,
        peers=peers,
    )


@app.command()
@grouped
def loading(
    contest: Contest,
    input: Input = None,
    json: Json = False,
) -> None:
    """Measure reading the recording from a CSV file, compared with pyarrow (Table I)."""
    from xstream.bench.loading import loading as run

    _measure(run, "loading", json, **vars(contest), input=input)


@app.command("io")
@grouped
def files(
    contest: LargeWindows,
    megabytes: Megabytes = 256.0,
    json: Json = False,
) -> None:
    """Measure reading WAV, Parquet, npy and CSV files, compared with their libraries."""
    from xstream.bench.files import files as run

    _measure(run, "io", json, **vars(contest), megabytes=megabytes)


@app.command()
def network(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", megabytes: Megabytes = 500.0,
    trials: Trials = 5, json: Json = False,
) -> None:  # fmt: skip
    """Measure TCP and UDP on loopback, compared with bare loops in C (needs a C compiler)."""
    from xstream.bench.network import network as run

    _measure(
        run, "network", json,
        scheduler=scheduler, memory=memory, megabytes=megabytes, trials=trials,
    )  # fmt: skip


@app.command()
@grouped
def elementwise(
    timed: Timed,
    megabytes: Megabytes = 256.0,
    peers: Peers = False,
    json: Json = False,
) -> None:
    """Measure maps that multiply by a constant, one and ten in a row, and bare numba loops."""
    from xstream.bench.elementwise import elementwise as run

    _measure(run, "elementwise", json, **vars(timed), megabytes=megabytes, peers=peers)


@app.command()
@grouped
def enginebench(
    timed: Schedulers,
    kind: Kind = "library",
    operators: Operators = 1000,
    json: Json = False,
) -> None:
    """Measure nanoseconds per hop through 1,000 pass-through operators under every scheduler."""
    from xstream.bench.enginebench import enginebench as run

    _measure(run, "enginebench", json, **vars(timed), kind=kind, operators=operators)


@app.command()
def ratecontrol(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    trials: Trials = 5, seconds: Seconds = 0.1, input: Input = None,
    clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """Measure overload (up to ten times the capacity) with and without rate control (Figure 7)."""
    from xstream.bench.ratecontrol import ratecontrol as run

    _measure(
        run, "ratecontrol", json,
        scheduler=scheduler, memory=memory, window=window, trials=trials, seconds=seconds,
        input=input, clock=clock,
    )  # fmt: skip


@app.command()
@grouped
def pythonop(
    timed: SmallWindows,
    operators: Operators = 1,
    json: Json = False,
) -> None:
    """Measure the cost of a plain Python operator per tuple."""
    from xstream.bench.pythonop import pythonop as run

    _measure(run, "pythonop", json, **vars(timed), operators=operators, kind="python")


@app.command()
def threads(
    subject: Annotated[
        str, typer.Argument(help="An application with a query, for example pipeline.")
    ] = "detectaudio",
    threads: Annotated[str, typer.Option(help="Numbers of threads, for example 1,2.")] = "1,2",
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    trials: Trials = 9, seconds: Seconds = 1.0, clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """An application's query on several threads against one, in turns."""
    from functools import partial

    from xstream.bench.threads import threads as run
    from xstream.errors import InputError

    numbers = [text.strip() for text in threads.split(",")]
    if not all(text.isdecimal() for text in numbers):
        raise InputError(f"--threads is one or more numbers, for example 1,2, not {threads!r}")
    counts = tuple(map(int, numbers))
    _measure(
        partial(run, subject=subject, counts=counts), "threads", json,
        scheduler=scheduler, memory=memory, window=window, trials=trials, seconds=seconds,
        clock=clock,
    )  # fmt: skip


@app.command()
def live(
    subject: Annotated[
        str, typer.Argument(help="chain, or an application with a query, for example linearroad.")
    ] = "chain",
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    kind: Kind = "library", operators: Operators = 1000, trials: Trials = 5,
    seconds: Seconds = 10.0, clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """Measure what a live view with an open page costs: a chain, or an application's query."""
    from functools import partial

    from xstream.bench.live import live as run
    from xstream.live import Live

    _measure(
        partial(run, subject=subject, page_view=Live(say=lambda line: None)), "live", json,
        scheduler=scheduler, memory=memory, window=window, kind=kind, operators=operators,
        trials=trials, seconds=seconds, clock=clock,
    )  # fmt: skip


app.command()(bench_history.record)
app.command()(bench_history.compare)


def add_applications() -> None:
    """Add a command for every benchmark of an installed application."""
    for entry in sorted(metadata.entry_points(group="xstream.benchmarks"), key=lambda e: e.name):
        app.command(
            entry.name, help=f"Measure the application {entry.name}; its README describes it."
        )(_application(entry))


def _application(entry: metadata.EntryPoint) -> Callable[..., None]:
    def command(
        scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
        trials: Trials = 9, seconds: Seconds = 0.1, samples: Samples = None, input: Input = None,
        clock: Clock = "wall", json: Json = False,
    ) -> None:  # fmt: skip
        _measure(
            entry.load(), entry.name, json,
            scheduler=scheduler, memory=memory, window=window, trials=trials, seconds=seconds,
            samples=samples, input=input, clock=clock,
        )  # fmt: skip

    return command


def _measure(
    benchmark: Callable[[Settings], Report], name: str, as_json: bool, **values: Any
) -> None:
    from xstream.bench.settings import Settings

    with (
        interrupted_with(f"the benchmark {name} was not finished; no figures are shown"),
        Progress(name, unit="preparation") as progress,
    ):
        report = benchmark(Settings(**values, progress=progress))
    _show(report, as_json)


def _show(report: Report, as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(report.to_json(), indent=2))
        return
    from rich.console import Console

    from xstream.cli._tables import print_report

    print_report(report, Console(highlight=False))
