"""`xstream bench`: the paper's benchmarks; xstream.bench does the work, this prints."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xstream.console import Progress, interrupted_with, within

if TYPE_CHECKING:
    from xstream.bench.report import Report
    from xstream.bench.settings import Settings

__all__ = ["add_applications", "app"]

app = typer.Typer(
    help="Benchmarks: Table I, EngineBench, rate control, applications. Each prints its figures.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Scheduler = Annotated[str, typer.Option(help="fifo, fifo-slice, rtc or df.")]
Memory = Annotated[
    str, typer.Option(help="copy-always, refcount-copy, refcount-realloc or refcount-lazy.")
]
Window = Annotated[int, typer.Option(help="Samples in a window.", callback=within(1, 2**20))]
Trials = Annotated[
    int,
    typer.Option(
        help="How often each contender is measured, in turns.", callback=within(1, 10_000)
    ),
]
Seconds = Annotated[
    float, typer.Option(help="About how long a trial takes.", callback=within(0.0001, 60))
]
Samples = Annotated[
    int | None,
    typer.Option(
        help="Samples in a trial, instead of --seconds.",
        show_default=False,
        callback=within(1, 10**12),
    ),
]
Input = Annotated[
    Path | None, typer.Option(help="A sound file instead of the recording made here.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Kind = Annotated[str, typer.Option(help="How operators are written: library, kernel or python.")]
Operators = Annotated[int, typer.Option(help="Operators in the chain.", callback=within(1, 10_000))]
Peers = Annotated[bool, typer.Option("--peers", help="Run other engines on the same work.")]
Clock = Annotated[
    str, typer.Option(help="wall, or processor: the time that a busy machine leaves us.")
]
Alpha = Annotated[
    float,
    typer.Option(
        help="Windows pass whose standard deviation is above this.", callback=within(-1e9, 1e9)
    ),
]
Beta = Annotated[
    float,
    typer.Option(help="Windows pass whose mean is below this.", callback=within(-1e9, 1e9)),
]


@app.command()
def passchain(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    kind: Kind = "library", operators: Operators = 10, trials: Trials = 9, seconds: Seconds = 0.1,
    samples: Samples = None, input: Input = None, peers: Peers = False,
    clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """Ten operators that pass their input on: what passing data costs."""
    from xstream.bench import table1

    _measure(
        table1.passchain, "passchain", json,
        scheduler=scheduler, memory=memory, window=window, kind=kind, operators=operators,
        trials=trials, seconds=seconds, samples=samples, input=input, peers=peers,
        clock=clock,
    )  # fmt: skip


@app.command()
def statfilter(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    kind: Kind = "library", trials: Trials = 9, seconds: Seconds = 0.1, samples: Samples = None,
    megabytes: Annotated[
        float,
        typer.Option(
            help="Also measured once over so much memory; 0: only in cache.",
            callback=within(0, 512),
        ),
    ] = 256.0,
    alpha: Alpha = 0.02, beta: Beta = 0.001, input: Input = None, peers: Peers = False,
    clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """Two filters over windows, beside a bare numba loop with the same arithmetic."""
    from xstream.bench import table1

    _measure(
        table1.statfilter, "statfilter", json,
        scheduler=scheduler, memory=memory, window=window, kind=kind, trials=trials,
        seconds=seconds, samples=samples, megabytes=megabytes, alpha=alpha, beta=beta, input=input,
        peers=peers, clock=clock,
    )  # fmt: skip


@app.command()
def silencefilter(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    trials: Trials = 9, seconds: Seconds = 0.1, samples: Samples = None, alpha: Alpha = 0.02,
    beta: Beta = 0.001, input: Input = None, peers: Peers = False,
    clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """A stream joined with the ranges of it that hold a voice."""
    from xstream.bench import table1

    _measure(
        table1.silencefilter, "silencefilter", json,
        scheduler=scheduler, memory=memory, window=window, trials=trials, seconds=seconds,
        samples=samples, alpha=alpha, beta=beta, input=input, peers=peers,
        clock=clock,
    )  # fmt: skip


@app.command()
def enginebench(
    scheduler: Annotated[str, typer.Option(help="fifo, fifo-slice, rtc, df, or all.")] = "all",
    memory: Memory = "refcount-lazy", window: Window = 4096, kind: Kind = "library",
    operators: Operators = 1000, trials: Trials = 9, seconds: Seconds = 0.1,
    samples: Samples = None, input: Input = None, clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """A thousand pass-through operators: nanoseconds a hop under every scheduler."""
    from xstream.bench.enginebench import enginebench as run

    _measure(
        run, "enginebench", json,
        scheduler=scheduler, memory=memory, window=window, kind=kind, operators=operators,
        trials=trials, seconds=seconds, samples=samples, input=input,
        clock=clock,
    )  # fmt: skip


@app.command()
def ratecontrol(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 4096,
    trials: Trials = 5, seconds: Seconds = 0.1, input: Input = None,
    clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """Up to ten times the load that can be served, with rate control and without (Figure 7)."""
    from xstream.bench.ratecontrol import ratecontrol as run

    _measure(
        run, "ratecontrol", json,
        scheduler=scheduler, memory=memory, window=window, trials=trials, seconds=seconds,
        input=input, clock=clock,
    )  # fmt: skip


@app.command()
def pythonop(
    scheduler: Scheduler = "df", memory: Memory = "refcount-lazy", window: Window = 64,
    operators: Operators = 1, trials: Trials = 9, seconds: Seconds = 0.1, samples: Samples = None,
    input: Input = None, clock: Clock = "wall", json: Json = False,
) -> None:  # fmt: skip
    """What a plain Python operator costs by the tuple."""
    from xstream.bench.pythonop import pythonop as run

    _measure(
        run, "pythonop", json,
        scheduler=scheduler, memory=memory, window=window, operators=operators, kind="python",
        trials=trials, seconds=seconds, samples=samples, input=input,
        clock=clock,
    )  # fmt: skip


def add_applications() -> None:
    """A command for every benchmark that an installed application names."""
    for entry in sorted(metadata.entry_points(group="xstream.benchmarks"), key=lambda e: e.name):
        app.command(entry.name, help=f"The application {entry.name}, as its README describes it.")(
            _application(entry)
        )


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
        interrupted_with(f"the benchmark {name} is not finished, so that no figures are shown"),
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
