"""`xstream doctor`: what is installed, what is missing, and how to fix it."""

from __future__ import annotations

from typing import Annotated

import typer

from xstream.cli.diagnosis import BROKEN, MISSING, OK, Finding, examine

__all__ = ["doctor"]

COLOURS = {OK: "green", MISSING: "yellow", BROKEN: "red"}


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check this installation: one line per part, and how to fix what is missing.

    The exit code is 0 if queries run, even if optional parts are missing, and 1 otherwise.
    """
    findings = []
    for finding in examine():
        findings.append(finding)
        if not json:
            _print(finding)
    working = all(finding.status != BROKEN for finding in findings)
    if json:
        import json as writer

        rows = [finding.to_json() for finding in findings]
        typer.echo(writer.dumps({"working": working, "findings": rows}, indent=2))
    raise typer.Exit(0 if working else 1)


def _print(finding: Finding) -> None:
    status = typer.style(f"{finding.status:8}", fg=COLOURS[finding.status])
    fix = f"; {finding.fix}" if finding.fix else ""
    typer.echo(f"{status} {finding.name:16} {finding.found}{fix}")
