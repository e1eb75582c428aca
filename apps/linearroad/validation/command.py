"""`xstream linearroad validate`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearroad.storage import typed

if TYPE_CHECKING:
    from linearroad.validation.verdict import Verdict

__all__ = ["validate_command"]

SHOWN = 10
REPORT = "report.html"


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


def _path(help: str) -> Any:
    return typer.Option(help=help, parser=typed, metavar="PATH")


Input = Annotated[Path, _path("The input of the run.")]
_OUTPUT = "The output directory of a run, or a file of answers of any system."
Output = Annotated[Path, _path(_OUTPUT)]
HistoryFrom = Annotated[Path | None, _path("Generated directory with history.")]
Tolls = Annotated[Path | None, _path("TollHistory file, flat or Parquet.")]
SegmentHistory = Annotated[Path | None, _path("SegmentHistory file, flat or Parquet.")]
_RULES = "Rule set: paper, brandeis, walmart or thesis; default: that of the run."
Rules = Annotated[str | None, _option(_RULES)]
_MINUTES = "Check only this many minutes, if the run stopped there."
Minutes = Annotated[int | None, _option(_MINUTES)]
_TARIFF = "Rules of the thesis; default: that of the run, or {}."
BaseToll = Annotated[int | None, _option(_TARIFF.format(2))]
BaseCredit = Annotated[int | None, _option(_TARIFF.format(50))]
FrequentTraveller = Annotated[int | None, _option(_TARIFF.format(500))]
Master = Annotated[str | None, _option("Spark master; default: local[*].")]
Report = Annotated[bool, _option("Also write OUTPUT/report.html.", "--report")]
Json = Annotated[bool, _option("Print validation.json to standard output.", "--json")]


def validate_command(
    input: Input,
    output: Output,
    history: HistoryFrom = None,
    tolls: Tolls = None,
    segment_history: SegmentHistory = None,
    rules: Rules = None,
    minutes: Minutes = None,
    basetoll: BaseToll = None,
    basecredit: BaseCredit = None,
    ftmin: FrequentTraveller = None,
    master: Master = None,
    report: Report = False,
    json: Json = False,
) -> None:
    """Compute every expected answer with Spark and compare; exit 0 if all are right and in time."""
    from linearroad.validation.job import HistoryPaths, validate
    from linearroad.validation.progress import steps
    from xstream.console import check_output_file, require_package

    folder = output.parent if output.is_file() else output
    if report:
        require_package("plotly")
        check_output_file(folder / REPORT)
    with steps(further=int(report)) as say:
        paths = HistoryPaths(history, tolls, segment_history)
        given = {"basetoll": basetoll, "basecredit": basecredit, "ftmin": ftmin}
        tariff = {name: value for name, value in given.items() if value is not None}
        shown = validate(input, output, paths, rules, minutes, master, say, tariff)
        if report:
            from linearroad.validation.page import write_report

            say("drawing the report")
            page = write_report(folder, shown)
    if json:
        typer.echo(json_module.dumps(shown.verdict.as_dict(), indent=1))
    else:
        show(shown.verdict, folder)
        if report:
            typer.echo(f"report: {page}")
    if not shown.verdict.passed:
        raise typer.Exit(1)


def show(verdict: Verdict, output: Path) -> None:
    """The verdict, and the first differences in words."""
    typer.echo(verdict.line())
    if verdict.passed:
        return
    for sentence in verdict.first_differences[:SHOWN]:
        typer.echo(f"  {sentence}")
    typer.echo(f"all differences: {output / str(verdict.differences_file)}")
