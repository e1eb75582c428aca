"""The commands below `xstream netmon`."""

from __future__ import annotations

from typing import Annotated

import typer

from xstream.console import interrupted_with, within

app = typer.Typer(
    help="Network monitoring: packets put right from several receivers' corrupted copies.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _group() -> None:
    """Network monitoring: packets put right from several receivers' corrupted copies."""


@app.command()
def demo(
    packets: Annotated[
        int, typer.Option(help="How many are sent.", callback=within(1, 200_000))
    ] = 4_000,
    receivers: Annotated[int, typer.Option(help="How many hear them, 16 at most.")] = 6,
    groups: Annotated[int, typer.Option(help="In how many places receivers stand.")] = 3,
    error_rate: Annotated[float, typer.Option(help="Of bits, while there is interference.")] = 4e-4,
    seed: Annotated[
        int, typer.Option(help="Same seed, same receptions.", callback=within(0, 2**32))
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Let receivers hear packets wrongly, put them right, and compare with what was sent."""
    from netmon.outcome import evaluate
    from netmon.packets import generate
    from netmon.query import monitor

    with interrupted_with("the packets are not all put right, so that nothing is shown"):
        heard = generate(packets, receivers, groups, error_rate=error_rate, seed=seed)
        delivered = monitor(heard)
    outcome = evaluate(heard, delivered)
    if json:
        import json as writer

        found = {**outcome.to_json(), "clusters": list(delivered.clusters)}
        typer.echo(writer.dumps(found, indent=2))
        return
    typer.echo(f"{outcome.sent:8,} packets sent to {receivers} receivers")
    typer.echo(f"{outcome.heard_rightly:8,} heard rightly by one receiver at least")
    typer.echo(f"{outcome.reconstructed:8,} reconstructed from corrupted copies")
    typer.echo(f"{outcome.lost:8,} heard and not to be reconstructed, {outcome.unheard} unheard")
    typer.echo(f"{outcome.wrong:8,} delivered wrongly")
    clusters = ", ".join(map(str, delivered.clusters))
    verdict = "as they stand" if outcome.clusters_right else "not as they stand"
    typer.echo(f"receivers by cluster: {clusters} ({verdict})")
