"""Experiments: one folder and one command each, with a table of all trials.

The folder of an experiment has an `experiment.py` that defines EXPERIMENT. The experiments of the
paper are in bench/experiments of the source tree.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from xstream.bench.journal import Journal
from xstream.bench.report import Figure, machine
from xstream.console import Progress
from xstream.errors import InputError

__all__ = [
    "Experiment",
    "Finding",
    "Outcome",
    "Plot",
    "Row",
    "Scale",
    "Unavailable",
    "best",
    "experiments",
    "find_experiment",
    "mean_and_interval",
    "run_experiment",
    "summary",
]  # fmt: skip

#: One trial: its parameters, its number and the measured values.
Row = dict[str, Any]


class Unavailable(InputError):
    """An experiment cannot run on this machine or in this installation."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of an experiment."""

    full: bool = False
    trials: int = 5
    #: Approximate length of a trial.
    seconds: float = 0.03
    clock: str = "wall"
    #: Whether peer engines are measured too, which takes minutes.
    peers: bool = False
    #: Updated between trials.
    progress: Progress = field(default_factory=Progress.silent, repr=False, compare=False)
    #: Parts that an earlier run has finished: trials, or what the experiment names in `part`.
    finished: frozenset[Any] = frozenset()

    @property
    def pending(self) -> list[int]:
        """The numbers of the trials that are to be measured.

        >>> Scale(trials=3, finished=frozenset({0})).pending
        [1, 2]
        """
        return [trial for trial in range(self.trials) if trial not in self.finished]

    def to_json(self) -> dict[str, Any]:
        """What decides whether rows of two runs may stand in one table."""
        return {
            "scale": self.name, "trials": self.trials, "seconds": self.seconds,
            "clock": self.clock, "peers": self.peers,
        }  # fmt: skip

    @property
    def name(self) -> str:
        """The result table of an experiment."""
        return "full" if self.full else "small"


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of means with confidence intervals: its axes and the columns that define its lines."""

    title: str
    x: str
    value: str
    by: tuple[str, ...]
    y_title: str
    x_title: str
    #: Values of other columns that select its rows.
    where: Mapping[str, Any]
    kind: str = "lines"
    log_x: bool = False
    log_y: bool = False
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The findings: figures with their targets, a table and a text."""

    figures: Sequence[Figure]
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    #: Explains the differences from the paper by the measured values.
    text: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """The definition of an experiment in its folder."""

    name: str
    title: str
    #: The findings of the paper.
    paper: str
    measure: Callable[[Scale], Iterator[Row]]
    plots: Sequence[Plot]
    find: Callable[[Sequence[Row]], Finding]
    #: The column by which it can be resumed: rows with the same value form a part.
    part: str = "trial"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an experiment."""

    experiment: Experiment
    scale: Scale
    rows: Sequence[Row]
    finding: Finding
    machine: dict[str, Any]

    def to_csv(self) -> str:
        """Return a CSV row for every trial, with its parameters, the machine and the commit."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        machine = {k: v for k, v in self.machine.items() if k not in ("date", "command")}
        machine["machine_load"] = machine.pop("load")  # `load` may be a parameter of an experiment
        where = {
            "experiment": self.experiment.name, "scale": self.scale.name,
            "clock": self.scale.clock, **machine, "measured": self.machine["date"][:10],
        }  # fmt: skip
        text = io.StringIO()
        writer = csv.DictWriter(text, [*names, *where], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, **where} for row in self.rows)
        return text.getvalue()

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            **self.scale.to_json(),
            "paper": self.experiment.paper,
            "figures": [figure.to_json() for figure in self.finding.figures],
            "table": {
                "columns": list(self.finding.columns),
                "rows": [list(map(str, row)) for row in self.finding.rows],
            },
            "text": self.finding.text,
            "plots": [asdict(plot) for plot in self.experiment.plots],
            "rows": list(self.rows),
            "machine": self.machine,
        }


def run_experiment(experiment: Experiment, scale: Scale, journal: Journal | None = None) -> Outcome:
    """Run an experiment; raise `Unavailable` if it cannot run on this machine.

    Finished parts are kept in the journal, and those that it holds are not measured again.
    """
    before = machine()
    rows = list(journal.rows) if journal is not None else []
    done = frozenset(row.get(experiment.part) for row in rows)
    part: list[Row] = []
    scale.progress.begin(None, "row")
    for row in experiment.measure(replace(scale, finished=done)):
        which = row.get(experiment.part)
        if which in done:  # an experiment that does not ask what is finished
            continue
        if part and which != part[0].get(experiment.part):
            if journal is not None:
                journal.add(part)
            part = []
        part.append(row)
        rows.append(row)
        if scale.progress.total is None:  # for experiments that do not count their trials
            scale.progress.update(len(rows))
    return Outcome(experiment, scale, rows, experiment.find(rows), before)


# -- tables of trials ------------------------------------------------------------------------


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half of its 95 % confidence interval (Student's t).

    >>> mean, half = mean_and_interval([1.0, 2.0, 3.0])
    >>> mean, round(half, 3)
    (2.0, 2.484)
    """
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return mean, 0.0
    from scipy import stats

    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return mean, float(stats.t.ppf(0.975, count - 1)) * spread / math.sqrt(count)


def summary(
    rows: Sequence[Row], by: Sequence[str], value: str = "samples_per_second"
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Return mean and half interval of a measured column for each combination of other columns.

    >>> summary([{"n": 1, "v": 2.0}, {"n": 1, "v": 4.0}], ["n"], "v")[(1,)][0]
    3.0
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if value in row and all(name in row for name in by):
            groups.setdefault(tuple(row[name] for name in by), []).append(float(row[value]))
    return {key: mean_and_interval(values) for key, values in groups.items()}


def best(
    rows: Sequence[Row], by: Sequence[str], value: str = "samples_per_second"
) -> dict[tuple[Any, ...], float]:
    """Return the best trial of each combination, which is the least disturbed one.

    >>> best([{"n": 1, "v": 2.0}, {"n": 1, "v": 4.0}], ["n"], "v")
    {(1,): 4.0}
    """
    found: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = tuple(row[name] for name in by)
        found[key] = max(found.get(key, float(row[value])), float(row[value]))
    return found


# -- folders ---------------------------------------------------------------------------------


def _homes() -> list[Path]:
    package = Path(__file__).resolve().parents[1]
    return [package / "experiments", package.parent / "bench" / "experiments"]


def experiments() -> dict[str, Path]:
    """Return the folders of all experiments by name."""
    return {
        folder.name: folder
        for home in _homes()
        if home.is_dir()
        for folder in sorted(home.iterdir())
        if (folder / "experiment.py").is_file()
    }


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name or by the path of its folder."""
    known = experiments()
    folder = known.get(name, Path(name))
    path = folder / "experiment.py"
    if not path.is_file():
        raise InputError(f"there is no experiment {name!r}: choose one of {', '.join(known)}")
    # The folder is loaded as a package, so that its files can import each other.
    package = f"xstream_experiment_{folder.name.replace('-', '_')}"
    if f"{package}.experiment" in sys.modules:
        module = sys.modules[f"{package}.experiment"]
    else:
        _load(package, folder / "__init__.py", folder)
        module = _load(f"{package}.experiment", path, None)
    found = getattr(module, "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise InputError(f"{path} defines no EXPERIMENT")
    return found


def _load(name: str, path: Path, package: Path | None) -> Any:
    where = [str(package)] if package is not None else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        if path.is_file():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
