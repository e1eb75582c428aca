"""`xstream yabench adapter new` and `xstream yabench install`."""

from __future__ import annotations

import shutil
import subprocess
import sys
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
    program = program if shutil.which(program) or program != "python" else "python3"
    typer.echo(
        f'{path}: try it with `xstream yabench run e1 --out DIR -D "engine={program} {path}"`'
    )


#: The program that installs an engine, and its arguments, by engine.
_INSTALLERS: dict[str, tuple[str, ...]] = {
    "rsp-js": ("npm", "install", "--no-audit", "--no-fund", "rsp-js@1.3.5", "n3"),
    "flink": (sys.executable, "-m", "pip", "install", "--no-deps", "--upgrade", "--target", ".",
              "apache-flink-libraries>=2.0,<3"),
}  # fmt: skip


def install_command(
    engine: Annotated[str, typer.Argument(help="rsp-js, or flink (330 MB).")],
) -> None:
    """Install an engine that is no Python package into a folder of its own."""
    from yabench.engines import engine_folder

    if engine not in _INSTALLERS:
        known = " and ".join(_INSTALLERS)
        raise InputError(f"only {known} are installed by this command, not {engine!r}")
    program, *arguments = _INSTALLERS[engine]
    found = shutil.which(program)
    if found is None:
        raise InputError(f"{engine} needs {program}, which is not installed")
    folder = engine_folder(engine)
    folder.mkdir(parents=True, exist_ok=True)
    if engine == "rsp-js":
        (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    typer.echo(f"installing {engine} into {folder}")
    done = subprocess.run(
        [found, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise OperatorError(f"{Path(program).name} could not install {engine}: {lines[-1]}")
    typer.echo(f"{engine} is installed in {folder}")
