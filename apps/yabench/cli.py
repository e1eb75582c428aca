"""The commands of `xstream yabench`."""

from __future__ import annotations

import typer

from yabench.commands.adapter import adapter_app, install_command
from yabench.commands.check import check_command
from yabench.commands.limit import limit_command
from yabench.commands.run import generate_command, report_command, run_command

app = typer.Typer(
    help="YABench: benchmark windowed stream engines and check every answer.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """YABench: benchmark windowed stream engines and check every answer."""


app.command("run")(run_command)
app.command("report")(report_command)
app.command("check")(check_command)
app.command("generate")(generate_command)
app.command("limit")(limit_command)
app.command("install")(install_command)
app.add_typer(adapter_app, name="adapter")
