"""The commands of `xstream yabench`."""

from __future__ import annotations

import typer

from yabench.commands.check import check_command
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
