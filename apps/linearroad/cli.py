"""The commands below `xstream linearroad`.

Nothing heavy is imported at the top: each command imports what it runs.
"""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Linear Road: generate traffic, run the queries, check the answers.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Linear Road: generate traffic, run the queries, check the answers."""
