"""What all commands share: interrupts, progress, checks of options, outputs and packages."""

from __future__ import annotations

from xstream.console.command import command_line, command_recorded
from xstream.console.interrupts import exit_on_interrupt, interrupted_with
from xstream.console.options import within
from xstream.console.outputs import check_output_directory, check_output_file, whole_file
from xstream.console.packages import OPTIONAL_PACKAGES, require_package
from xstream.console.progress import Progress

__all__ = [
    "OPTIONAL_PACKAGES",
    "Progress",
    "check_output_directory",
    "check_output_file",
    "command_line",
    "command_recorded",
    "exit_on_interrupt",
    "interrupted_with",
    "require_package",
    "whole_file",
    "within",
]
