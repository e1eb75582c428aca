"""`xstream yabench adapter new` and `xstream yabench install`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from xstream import InputError, OperatorError
from xstream.console import check_output_file

__all__ = ["adapter_app", "install_command"]

adapter_app = typer.Typer(help="Adapters: how engines take part.", no_args_is_help=True)


@adapter_app.callback()
def _group() -> None:
    """Adapters: how engines take part."""


@adapter_app.command("new")
def new_command(
    out: Annotated[Path, typer.Argument(help="File to write; .py or .mjs is added if missing.")],
    language: Annotated[str, typer.Option(help="python or javascript.")] = "python",
) -> None:
    """Write a working adapter, to be changed into one for your engine."""
    from yabench.engines.templates import TEMPLATES

    if language not in TEMPLATES:
        raise InputError(f"there is no template in {language!r}: choose {', '.join(TEMPLATES)}")
    suffix, text, program = TEMPLATES[language]
    path = out if out.suffix == suffix else out.with_name(out.name + suffix)
    if path.exists():
        raise InputError(f"{path} exists already")
    check_output_file(path)
    path.write_text(text, encoding="utf-8")
    typer.echo(
        f'{path}: try it with `xstream yabench run e1 --out DIR -D "engine={program} {path}"`'
    )


def install_command(
    engine: Annotated[str, typer.Argument(help="rsp-js, the engine that is no Python package.")],
) -> None:
    """Install an engine into a folder of its own."""
    from yabench.engines import rsp_js_folder

    if engine != "rsp-js":
        raise InputError(f"only rsp-js is installed by this command, not {engine!r}")
    npm = shutil.which("npm")
    if npm is None:
        raise InputError("rsp-js needs node and npm, which are not installed")
    folder = rsp_js_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", "rsp-js@1.3.5", "n3"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise OperatorError(f"npm could not install rsp-js: {lines[-1]}")
    typer.echo(f"rsp-js is installed in {folder}")
