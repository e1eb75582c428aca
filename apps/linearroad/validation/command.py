"""`xstream linearroad validate`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from linearroad.validation.verdict import Verdict

__all__ = ["validate_command"]

SHOWN = 10
REPORT = "report.html"


def validate_command(
    input: Annotated[Path, typer.Option(help="The input of the run.")],
    output: Annotated[
        Path,
        typer.Option(help="The output directory of a run, or a file of answers of any system."),
    ],
    history: Annotated[Path | None, typer.Option(help="Generated directory with history.")] = None,
    tolls: Annotated[Path | None, typer.Option(help="TollHistory file, flat or Parquet.")] = None,
    segment_history: Annotated[
        Path | None, typer.Option(help="SegmentHistory file, flat or Parquet.")
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            help="Rule set: paper, brandeis, walmart or thesis; default: that of the run."
        ),
    ] = None,
    minutes: Annotated[
        int | None, typer.Option(help="Check only this many minutes, if the run stopped there.")
    ] = None,
    basetoll: Annotated[
        int | None, typer.Option(help="Rules of the thesis; default: that of the run, or 2.")
    ] = None,
    basecredit: Annotated[
        int | None, typer.Option(help="Rules of the thesis; default: that of the run, or 50.")
    ] = None,
    ftmin: Annotated[
        int | None, typer.Option(help="Rules of the thesis; default: that of the run, or 500.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master; default: local[*].")] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Also write OUTPUT/report.html.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print validation.json to standard output.")
    ] = False,
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
