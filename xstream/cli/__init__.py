"""The `xstream` command.

Commands are thin: they parse options, call a library function and print the result. Heavy packages
(numba, Spark, plotly) are imported inside the command that needs them, so that `--help` is fast.
Applications add their own group of commands through the entry point group `xstream.apps`.
"""

from __future__ import annotations

import atexit
import gc
import sys
from functools import lru_cache
from importlib import metadata
from typing import Annotated, Any

import typer
import typer.core

from xstream.cli.bench import add_applications
from xstream.cli.bench import app as bench_app
from xstream.cli.doctor import doctor
from xstream.cli.experiment import experiment
from xstream.cli.live import live
from xstream.cli.play import play
from xstream.cli.profile import profile
from xstream.cli.report import report
from xstream.console import command_recorded, exit_on_interrupt
from xstream.errors import XStreamError

__all__ = ["app", "main"]


class _Commands(typer.core.TyperGroup):
    """The group of all commands; an interrupt ends each of them in the same way."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Read the command line."""
        with exit_on_interrupt():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        with command_recorded(), exit_on_interrupt():
            return super().invoke(ctx)


_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="xstream",
    cls=_Commands,
    help="Run queries over signal segments, their benchmarks, and the Linear Road benchmark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)
app.add_typer(bench_app, name="bench")
app.command()(doctor)
app.command()(experiment)
app.command()(live)
app.command()(play)
app.command()(profile)
app.command()(report)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"xstream {metadata.version('xstream')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the command itself."""


def _load_apps() -> None:
    for entry in sorted(metadata.entry_points(group="xstream.apps"), key=lambda entry: entry.name):
        app.add_typer(entry.load(), name=entry.name)
    add_applications()


@lru_cache(maxsize=1)
def _command() -> Any:
    """Return the tree of all commands; the help of a flag shows no value type."""
    _load_apps()
    root = typer.main.get_command(app)
    commands = [root]
    while commands:
        command = commands.pop()
        commands.extend(getattr(command, "commands", {}).values())
        context = command.context_class(command, **_HELP)
        for param in command.get_params(context):
            if getattr(param, "is_flag", False):
                param.metavar = ""
    return root


def _leave() -> None:
    """Keep the interpreter from searching what is left for cycles, in vain.

    DuckDB needs that search: its extension reports each of its objects that is left as a leak.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line; exit with code 2 and one sentence if the user made an error."""
    atexit.register(_leave)
    try:
        with exit_on_interrupt():
            command = _command()
        command(prog_name="xstream")
    except XStreamError as error:
        typer.echo(f"xstream: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of the output has closed the pipe (`| head`), which is not an error.
        sys.stderr.close()
        sys.exit(0)
