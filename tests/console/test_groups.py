"""Options in groups: one option per field, and one value per group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from xstream.console.groups import grouped


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="In metres.")]
    height: Annotated[int, typer.Option("--height", "-h", help="In metres.")] = 2


@grouped
def paint(size: Size, colour: str = "red", twice: bool = False) -> None:
    """Paint it."""
    typer.echo(f"{size} {colour} {twice}")


app = typer.Typer()
app.command()(paint)


def test_fields_are_options_with_their_names_helps_and_defaults() -> None:
    done = CliRunner().invoke(app, ["--width", "3"])
    assert done.output == "Size(width=3, height=2) red False\n"
    done = CliRunner().invoke(app, ["--width", "3", "-h", "4", "--colour", "blue", "--twice"])
    assert done.output == "Size(width=3, height=4) blue True\n"
    shown = CliRunner().invoke(app, ["--help"]).output
    assert shown.index("--width") < shown.index("--height") < shown.index("--colour")
    assert shown.count("In metres.") == 2
    assert "Paint it." in shown


def test_a_field_without_default_is_required() -> None:
    done = CliRunner().invoke(app, ["--height", "3"])
    assert done.exit_code == 2
    assert "--width" in done.output


def test_a_command_can_be_called_with_its_options() -> None:
    wide: list[int] = []

    @grouped
    def note(size: Size) -> None:
        wide.append(size.width * size.height)

    note(width=3)
    note(width=3, height=5)
    assert wide == [6, 15]
