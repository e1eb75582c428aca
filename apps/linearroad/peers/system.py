"""A system that takes part in a comparison: its program, what it needs and what it leaves out."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self

__all__ = [
    "Program",
    "System",
    "Task",
    "all_of",
    "module",
    "needs_package",
    "needs_program",
    "nothing_missing",
]


@dataclass(frozen=True)
class Task:
    """What a program is told when it starts.

    Copies of generated expressways share the history of their originals: the history of expressway
    x is that of x modulo `base_expressways`, and that of vehicle v is that of v modulo
    `base_vehicles`.
    """

    #: A generated directory with history.
    history: Path
    #: Expressways of the stream.
    expressways: int
    base_expressways: int
    base_vehicles: int
    #: A folder that only this run uses, removed afterwards.
    folder: Path

    def arguments(self) -> list[str]:
        """As arguments of a program, in the order of the fields."""
        numbers = (self.expressways, self.base_expressways, self.base_vehicles)
        return [str(self.history), *map(str, numbers), str(self.folder)]

    @classmethod
    def parsed(cls, arguments: list[str]) -> Self:
        """The task that was given as arguments."""
        history, expressways, base_expressways, base_vehicles, folder = arguments
        numbers = (int(expressways), int(base_expressways), int(base_vehicles))
        return cls(Path(history), *numbers, Path(folder))


#: From a task to the command line of a program, which writes `listening on HOST:PORT` to standard
#: output or standard error when a driver may connect, answers one driver, and ends on SIGTERM.
Program = Callable[[Task], list[str]]
#: A sentence about what is missing, with the command that installs it; empty if nothing is.
Missing = Callable[[], str]


@dataclass(frozen=True)
class System:
    """A system, as `compare` runs it."""

    name: str
    #: What it is, in a few words for tables.
    title: str
    program: Program
    missing: Missing
    #: The wire of the driver, and whether the end of a second is marked.
    wire: str = "flat"
    marks: bool = True
    #: The first L to try.
    first: float = 1.0
    #: Kinds of answers (0 to 4) that it does not give.
    leaves_out: tuple[int, ...] = ()


def module(name: str) -> Program:
    """A program that is a module of this package, run by this interpreter."""

    def program(task: Task) -> list[str]:
        return [sys.executable, "-m", name, *task.arguments()]

    return program


def nothing_missing() -> str:
    """Nothing is missing."""
    return ""


def needs_package(package: str, install: str) -> Missing:
    """A Python package is needed."""

    def missing() -> str:
        return "" if find_spec(package) else f"{package} is not installed: run {install}"

    return missing


def needs_program(program: str, install: str) -> Missing:
    """A program on the path is needed."""

    def missing() -> str:
        return "" if shutil.which(program) else f"there is no program {program}: run {install}"

    return missing


def all_of(*needed: Missing) -> Missing:
    """Several things are needed; the first that is missing is reported."""
    return lambda: next((told for each in needed if (told := each())), "")
