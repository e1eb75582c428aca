"""`xstream yabench check`: judge recorded answers alone, whoever gave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xstream.console import interrupted_with

if TYPE_CHECKING:
    from yabench.judge import Judgement

__all__ = ["check_command"]


def check_command(
    test: Annotated[
        str, typer.Option(help="csrbench-q1 .. csrbench-q7, or a test of the file --tests.")
    ],
    stream: Annotated[Path, typer.Option(help="The stream that the engine was given.")],
    answers: Annotated[Path, typer.Option(help="The results of the engine, as JSON.")],
    gracious: Annotated[
        bool, typer.Option("--gracious", help="Let both borders move by up to one slide.")
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            help="window-close, content-change, non-empty or periodic; default: that of the test, "
            "for built-in tests the one that the answers follow."
        ),
    ] = None,
    only_new: Annotated[
        bool | None,
        typer.Option(
            "--only-new/--whole",
            help="With content-change: reports have only new bindings, or the whole content.",
        ),
    ] = None,
    tests: Annotated[
        Path | None, typer.Option(help="Test file with the test, or e1, e2, e3, e4.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare recorded answers with those of an oracle, window by window.

    Without --json the exit code is 1 if a window is wrong; JSON has it as `right`.
    """
    from yabench.checks import check

    with interrupted_with("the answers were not judged"):
        found = check(test, stream, answers, gracious, policy, only_new, tests)
    if as_json:
        typer.echo(json.dumps({"test": test, **found.to_json()}, indent=1))
        return
    _print(found)
    if not found.right:
        raise typer.Exit(1)


def _print(found: Judgement) -> None:
    """Print a line for each window and the finding."""
    typer.echo(f"{'window':>17}{'precision':>11}{'recall':>8}{'actual':>8}{'expected':>9}  delay")
    for window in found.windows:
        delay = "-" if window.delay_ms is None else f"{window.delay_ms:.0f} ms"
        moved = ""
        if window.start_shift_ms or window.end_shift_ms:
            moved = f"  borders {window.start_shift_ms:+d} and {window.end_shift_ms:+d} ms"
        typer.echo(
            f"{window.start:>8}-{window.end:<8}{window.precision:>11.3f}{window.recall:>8.3f}"
            f"{window.actual:>8}{window.expected:>9}  {delay}{moved}"
        )
    typer.echo(f"{found.windowing.policy}: {found.finding}")
