"""`xstream linearroad serve`: the command line. The job is imported when the command runs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from linearroad.live_options import LiveFlag, LivePort, LiveRecord, Watch, live_view
from linearroad.run.command import BaseCredit, BaseToll, FrequentTraveller
from xstream.errors import InputError

__all__ = ["serve_command"]


#: An expressway takes about 4 MiB from the start.
MOST_EXPRESSWAYS = 100_000


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


_LISTEN = "HOST:PORT to listen on; with port 0 a free one is chosen and printed."
Listen = Annotated[str, _option(_LISTEN)]
WireName = Annotated[str, _option("Format of rows and answers: flat, thesis or arrow.")]
Rules = Annotated[str, _option("Rule set: paper, brandeis, walmart or thesis.")]
HistoryFrom = Annotated[Path | None, _option("Generated directory with history.")]
Tolls = Annotated[Path | None, _option("TollHistory file, flat or Parquet.")]
SegmentHistory = Annotated[Path | None, _option("SegmentHistory file, flat or Parquet.")]
_EXPRESSWAYS = "Have room for so many expressways, and use the history for copies of its own."
Expressways = Annotated[float | None, _option(_EXPRESSWAYS)]
Threads = Annotated[int, _option("Number of threads, at most one per core.")]
Memory = Annotated[str, _option("Memory manager, for example refcount-lazy.")]
Once = Annotated[bool, _option("End after one driver.", "--once")]
_CHECKPOINT_S = "Save the state every so many seconds, so that a drive can go on after a crash."
CheckpointS = Annotated[float | None, _option(_CHECKPOINT_S, "--checkpoint-s")]
_CHECKPOINTS = "Folder for the checkpoints."
Checkpoints = Annotated[Path, _option(_CHECKPOINTS)]
_RESUME = "Go on from the last checkpoint of a service that was stopped or killed."
Resume = Annotated[bool, _option(_RESUME, "--resume")]
StallS = Annotated[float, _option("Drop a driver that reads nothing for so many seconds.")]


def serve_command(
    listen: Listen = "127.0.0.1:9000",
    wire: WireName = "flat",
    rules: Rules = "paper",
    history: HistoryFrom = None,
    tolls: Tolls = None,
    segment_history: SegmentHistory = None,
    expressways: Expressways = None,
    threads: Threads = 1,
    memory: Memory = "refcount-lazy",
    basetoll: BaseToll = 2,
    basecredit: BaseCredit = 50,
    ftmin: FrequentTraveller = 500,
    once: Once = False,
    stall_s: StallS = 60.0,
    checkpoint_s: CheckpointS = None,
    checkpoints: Checkpoints = Path("checkpoints"),
    resume: Resume = False,
    live: LiveFlag = False,
    live_port: LivePort = None,
    live_record: LiveRecord = None,
    watch: Watch = False,
) -> None:
    """Answer drivers over the network, one at a time, with the queries of `run`."""
    from linearroad.rules import Tariff
    from linearroad.service.job import ServeOptions, history_of_copies, serve
    from linearroad.tables.history import load_history
    from xstream.console.stop import Stop

    tariff = Tariff(basetoll, basecredit, ftmin)
    if resume and checkpoint_s is None:
        raise InputError("--resume requires --checkpoint-s")
    folder = None if checkpoint_s is None else checkpoints
    options = ServeOptions(
        listen, wire, rules, threads, memory, once, expressways, tariff, stall_s, folder,
        10.0 if checkpoint_s is None else checkpoint_s, resume,
    )  # fmt: skip
    known = load_history(history, tolls, segment_history)
    if expressways is not None and not 0.5 <= expressways <= MOST_EXPRESSWAYS:
        raise InputError(
            f"--expressways must be from 0.5 to {MOST_EXPRESSWAYS:,}, not {expressways:g}"
        )
    if expressways is not None and history is not None:
        known = history_of_copies(known, history, expressways)
    stop = Stop()
    view = live_view(live, live_port, live_record, watch)
    with view or nullcontext():
        served = serve(options, known, lambda line: typer.echo(line, err=True), stop, live=view)
    if stop.by_user:
        raise KeyboardInterrupt(f"{len(served):,} drivers were served")
    if once and served and served[0].error is not None:
        raise typer.Exit(1)
