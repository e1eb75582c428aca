"""Optional packages: those that only some features use, and the extras that install them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

from xstream.errors import MissingPackageError

__all__ = ["OPTIONAL_PACKAGES", "OptionalPackage", "require_package"]


class OptionalPackage(NamedTuple):
    """The extra of xstream that installs a package, and what uses it."""

    extra: str
    used_by: str


OPTIONAL_PACKAGES = {
    "confluent_kafka": OptionalPackage("kafka", "Kafka topics"),
    "duckdb": OptionalPackage("yabench", "YABench's oracles"),
    "hypothesis": OptionalPackage("testing", "the strategies of xstream.testing"),
    "jsonschema": OptionalPackage("sigmf", "SigMF recordings"),
    "pandas": OptionalPackage("linearroad", "Linear Road's generator and validator"),
    "plotly": OptionalPackage("report", "HTML pages"),
    "pyoxigraph": OptionalPackage("yabench", "YABench's oracles"),
    "pyspark": OptionalPackage("linearroad", "Linear Road's generator and validator"),
    "sigmf": OptionalPackage("sigmf", "SigMF recordings"),
    "soundfile": OptionalPackage("audio", "sound files"),
    "zmq": OptionalPackage("zmq", "ZeroMQ sockets"),
}


def require_package(name: str) -> None:
    """Raise `MissingPackageError` if an optional package is not installed; do not import it.

    Call it before the work whose result needs the package, not only before the import.

    >>> import sys
    >>> sys.modules["plotly"] = None                # as if it were not installed
    >>> require_package("plotly")
    Traceback (most recent call last):
    xstream.errors.MissingPackageError: plotly (for HTML pages) is not installed: run pip install 'xstream[report]'
    >>> del sys.modules["plotly"]
    """  # noqa: E501
    if find_spec(name) is None:
        extra, used_by = OPTIONAL_PACKAGES[name]
        raise MissingPackageError(
            f"{name} (for {used_by}) is not installed: run pip install 'xstream[{extra}]'"
        )
