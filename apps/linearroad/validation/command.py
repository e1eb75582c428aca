"""`xstream linearroad validate`: the command line. The job is imported when the command runs."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linearroad.options import HistoryFiles, option, path_option
from xstream.console.groups import grouped

if TYPE_CHECKING:
    from linearroad.validation.verdict import Verdict

__all__ = ["validate_command"]

SHOWN = 10
REPORT = "report.html"

_OUTPUT = "The output directory of a run, or a file of answers of any system."
_RULES = "Rule set: paper, brandeis, walmart or thesis; default: that of the run."
_MINUTES = "Check only this many minutes, if the run stopped there."
_TARIFF = "Rules of the thesis; default: that of the run, or {}."


@dataclass(frozen=True)
class Files:
    """The rows, and the answers to them."""

    input: Annotated[Path, path_option("The input of the run.")]
    output: Annotated[Path, path_option(_OUTPUT)]


@dataclass(frozen=True)
class Task:
    """The rules of the answers; None: those of the run."""

    rules: Annotated[str | None, option(_RULES)] = None
    minutes: Annotated[int | None, option(_MINUTES)] = None
    basetoll: Annotated[int | None, option(_TARIFF.format(2))] = None
    basecredit: Annotated[int | None, option(_TARIFF.format(50))] = None
    ftmin: Annotated[int | None, option(_TARIFF.format(500))] = None

    def tariff(self) -> dict[str, int]:
        """What is given of the tariff."""
        given = {name: getattr(self, name) for name in ("basetoll", "basecredit", "ftmin")}
        return {name: value for name, value in given.items() if value is not None}


Master = Annotated[str | None, option("Spark master; default: local[*].")]
Report = Annotated[bool, option("Also write OUTPUT/report.html.", "--report")]
Json = Annotated[bool, option("Print validation.json to standard output.", "--json")]


@grouped
def validate_command(
    files: Files, past: HistoryFiles, task: Task,
    master: Master = None, report: Report = False, json: Json = False,
) -> None:  # fmt: skip
    """Compute every expected answer with Spark and compare; exit 0 if all are right and in time."""
    from linearroad.validation.job import HistoryPaths, validate
    from linearroad.validation.progress import steps
    from xstream.console import check_output_file, require_package

    output = files.output
    folder = output.parent if output.is_file() else output
    if report:
        require_package("plotly")
        check_output_file(folder / REPORT)
    with steps(further=int(report)) as say:
        paths = HistoryPaths(*past.paths())
        shown = validate(
            files.input, output, paths, task.rules, task.minutes, master, say, task.tariff()
        )
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
