"""What all commands share: interrupts, progress, checks of options, outputs and packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xstream.console.command import command_line, command_recorded
from xstream.console.interrupts import (
    exit_on_interrupt,
    interrupted_with,
    interrupts_handled_by,
)
from xstream.console.outputs import check_output_directory, check_output_file, whole_file
from xstream.console.packages import OPTIONAL_PACKAGES, require_package
from xstream.console.progress import Progress

if TYPE_CHECKING:
    from xstream.console.options import within

__all__ = [
    "OPTIONAL_PACKAGES",
    "Progress",
    "check_output_directory",
    "check_output_file",
    "command_line",
    "command_recorded",
    "exit_on_interrupt",
    "interrupted_with",
    "interrupts_handled_by",
    "require_package",
    "whole_file",
    "within",
]


def __getattr__(name: str) -> Any:
    """Load `within` when a command uses it: it imports typer, which the engine does not need."""
    if name == "within":
        from xstream.console.options import within

        return within
    raise AttributeError(f"module 'xstream.console' has no attribute {name!r}")
