"""The systems that `compare` knows."""

from __future__ import annotations

import sys

from linearroad.peers.flink.launcher import flink_missing
from linearroad.peers.postgresql.cluster import postgresql_missing
from linearroad.peers.spark.launcher import spark_missing
from linearroad.peers.system import Program, System, Task, module, needs_package, nothing_missing
from xstream.errors import InputError

__all__ = ["SYSTEMS", "systems_named"]


def _xstream(task: Task) -> list[str]:
    copied = task.expressways > task.base_expressways
    return [
        *(sys.executable, "-c", "import sys; from xstream.cli import main; sys.exit(main())"),
        *("linearroad", "serve", "--listen", "127.0.0.1:0", "--wire", "arrow", "--once"),
        *("--history", str(task.history)),
        *(("--expressways", str(task.expressways)) if copied else ()),
    ]


def postgresql(variant: str) -> Program:
    """PostgreSQL with the functions of one of its SQL files."""
    return lambda task: [
        *(sys.executable, "-m", "linearroad.peers.postgresql.gateway", variant),
        *task.arguments(),
    ]


_ALL = (
    System("xstream", "xstream, by `serve`", _xstream, nothing_missing, "arrow", first=500),
    System(
        "postgresql-polling",
        "PostgreSQL, polled each second",
        postgresql("polling"),
        postgresql_missing,
        first=10,
    ),
    System(
        "postgresql-trigger",
        "PostgreSQL, triggers",
        postgresql("trigger"),
        postgresql_missing,
        first=5,
    ),
    System(
        "flink",
        "Flink, a DataStream job",
        module("linearroad.peers.flink.launcher"),
        flink_missing,
        first=100,
    ),
    System(
        "spark",
        "Spark Structured Streaming",
        module("linearroad.peers.spark.launcher"),
        spark_missing,
        first=5,
    ),
    System(
        "duckdb",
        "DuckDB, polled each second",
        module("linearroad.peers.duckdb.program"),
        needs_package("duckdb", "pip install duckdb"),
        "arrow",
        first=5,
    ),
    System(
        "bytewax",
        "bytewax, one worker",
        module("linearroad.peers.bytewax.program"),
        needs_package("bytewax", "pip install bytewax"),
        "arrow",
        first=20,
    ),
)
SYSTEMS = {system.name: system for system in _ALL}


def systems_named(names: str) -> list[System]:
    """The systems of a list of names, separated by commas; `all` are all of them."""
    if names == "all":
        return list(SYSTEMS.values())
    wanted = [name.strip() for name in names.split(",")]
    unknown = [name for name in wanted if name not in SYSTEMS]
    if unknown:
        known = ", ".join(SYSTEMS)
        raise InputError(f"there is no system {unknown[0]!r}: use all, or some of {known}")
    return [SYSTEMS[name] for name in dict.fromkeys(wanted)]
