"""The commands of `xstream netmon`."""

from __future__ import annotations

from typing import Annotated

import typer

from xstream.console import interrupted_with, within

app = typer.Typer(
    help="Network monitoring: reconstruct packets from the corrupted copies of several receivers.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """Network monitoring: reconstruct packets from the corrupted copies of several receivers."""


@app.command()
def demo(
    packets: Annotated[
        int, typer.Option(help="Number of packets that are sent.", callback=within(1, 200_000))
    ] = 4_000,
    receivers: Annotated[int, typer.Option(help="Number of receivers, at most 16.")] = 6,
    groups: Annotated[int, typer.Option(help="Number of places with receivers.")] = 3,
    error_rate: Annotated[float, typer.Option(help="Bit error rate during interference.")] = 4e-4,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the random numbers; the same seed gives the same receptions.",
            callback=within(0, 2**32),
        ),
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Generate corrupted packets, reconstruct them, and compare with those that were sent."""
    from netmon.outcome import evaluate
    from netmon.packets import generate
    from netmon.query import monitor

    with interrupted_with("not all packets were processed; nothing is shown"):
        heard = generate(packets, receivers, groups, error_rate=error_rate, seed=seed)
        delivered = monitor(heard)
    outcome = evaluate(heard, delivered)
    if json:
        import json as writer

        found = {**outcome.to_json(), "clusters": list(delivered.clusters)}
        typer.echo(writer.dumps(found, indent=2))
        return
    typer.echo(f"{outcome.sent:8,} packets sent to {receivers} receivers")
    typer.echo(f"{outcome.heard_rightly:8,} received correctly by at least one receiver")
    typer.echo(f"{outcome.reconstructed:8,} reconstructed from corrupted copies")
    typer.echo(f"{outcome.lost:8,} received but not reconstructed, {outcome.unheard} unheard")
    typer.echo(f"{outcome.wrong:8,} delivered wrongly")
    clusters = ", ".join(map(str, delivered.clusters))
    verdict = "correct" if outcome.clusters_right else "not correct"
    typer.echo(f"receivers by cluster: {clusters} ({verdict})")
