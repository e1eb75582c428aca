"""Test files: TOML with settings for all tests, and one table for each test."""

from __future__ import annotations

import hashlib
import json
import math
import string
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xstream import InputError
from yabench.windows import Windowing

__all__ = ["Test", "read_tests"]

_SETTINGS: dict[str, type | tuple[type, ...]] = {
    "engine": (str, list), "scenario": str, "stations": int, "duration_s": (int, float),
    "interval_s": (int, float), "seed": int, "runs": int, "speed": (int, float), "gracious": bool,
    "query": dict, "vars": dict, "name": str, "title": str, "published": str, "form": str,
}  # fmt: skip
_DEFAULTS: dict[str, Any] = {
    "engine": "xstream", "scenario": "weather", "stations": 50, "duration_s": 30, "interval_s": 1,
    "seed": 1, "runs": 1, "speed": 1.0, "gracious": False, "query": {}, "vars": {}, "title": "",
    "published": "", "form": "json",
}  # fmt: skip
_WINDOW = {"WSIZE_ms": 5000, "WSLIDE_ms": 5000, "policy": "window-close", "only_new": False}


@dataclass(frozen=True)
class Test:
    """One test: a stream, a query with its windows, and the engines to run it on."""

    __test__ = False  # not a test of pytest

    name: str
    title: str
    engines: tuple[str, ...]
    scenario: str
    stations: int
    interval_ms: int
    duration_ms: int
    seed: int
    runs: int
    speed: float
    gracious: bool
    form: str
    published: str
    variables: dict[str, Any] = field(default_factory=dict)
    #: Texts of the queries by engine; `engine` is for those without their own.
    queries: dict[str, str] = field(default_factory=dict)
    oracle: str = ""
    #: The language of the oracle's query: sparql or sql.
    language: str = "sql"

    @property
    def windowing(self) -> Windowing:
        """The windows and the report policy."""
        given = {**_WINDOW, **self.variables}
        period = given.get("period_ms")
        return Windowing(
            int(given["WSIZE_ms"]), int(given["WSLIDE_ms"]), str(given["policy"]),
            bool(given["only_new"]), None if period is None else int(period),
        )  # fmt: skip

    def task(self, engine: str) -> dict[str, Any]:
        """Return what an adapter is told."""
        windows = asdict(self.windowing)
        query = self.queries.get(engine, self.queries.get("engine", ""))
        return {"query": query, "vars": self.variables, **windows}

    def key(self, engine: str) -> str:
        """Return a text that differs if a run would: results of the same key are kept."""
        same = {**asdict(self), "engines": [engine], "runs": 0, "title": "", "published": ""}
        text = json.dumps([same, self.task(engine)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_tests(path: Path, given: Sequence[str] = ()) -> list[Test]:
    """Read a test file; `given` are the settings of the command line, as key=value.

    Settings of the command line win over those of a test, and those over the ones of the file.
    """
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    tables = found.pop("tests", [{}])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: tests are tables, [[tests]]")
    override = _override(given)
    tests = [_test(path, found, table, override, number) for number, table in enumerate(tables)]
    names = [test.name for test in tests]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path}: two tests have the name {name!r}")
    return tests


def _override(given: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {"vars": {}}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"-D takes key=value, not {text!r}")
        try:
            parsed = tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            parsed = value
        (settings if key in _SETTINGS else settings["vars"])[key] = parsed
    return settings


def _test(
    path: Path, file: dict[str, Any], table: dict[str, Any], override: dict[str, Any], number: int
) -> Test:
    merged = dict(_DEFAULTS)
    for level in (file, table, override):
        for key, value in level.items():
            if key in ("vars", "query"):
                if not isinstance(value, dict):
                    raise InputError(f"{path}: {key} is a table, not {value!r}")
                merged[key] = {**merged[key], **value}
            elif key in _SETTINGS:
                merged[key] = value
            else:  # variables may stand beside the settings of a test
                merged["vars"] = {**merged["vars"], key: value}
    for key, value in merged.items():
        if not isinstance(value, _SETTINGS[key]) or (isinstance(value, bool) and key != "gracious"):
            raise InputError(f"{path}: {key} has a value that it cannot have: {value!r}")
    if merged["scenario"] != "weather":
        raise InputError(f"{path}: there is no scenario {merged['scenario']!r}: use weather")
    if not 1 <= merged["runs"] <= 1000 or not 0 < merged["speed"] < math.inf:
        raise InputError(f"{path}: runs are 1 to 1000, and a speed is a number above 0")
    name = merged.get("name", f"test-{number + 1}")
    if not name or "/" in name or name.startswith("."):
        raise InputError(f"{path}: {name!r} cannot be the name of a test: it names a folder")
    return _built(path, name, merged)


def _built(path: Path, name: str, merged: dict[str, Any]) -> Test:
    engines = merged["engine"] if isinstance(merged["engine"], list) else [merged["engine"]]
    variables = {**_WINDOW, **merged["vars"]}
    oracle = merged["query"].get("oracle")
    if not isinstance(oracle, str):
        raise InputError(f"{path}: the query of the oracle is missing: [query] oracle = FILE")
    texts = {
        key: _filled(path, value, variables)
        for key, value in merged["query"].items()
        if key != "oracle"
    }
    test = Test(
        name=name,
        title=merged["title"],
        engines=tuple(map(str, engines)),
        scenario=merged["scenario"],
        stations=merged["stations"],
        interval_ms=round(merged["interval_s"] * 1000),
        duration_ms=round(merged["duration_s"] * 1000),
        seed=merged["seed"],
        runs=merged["runs"],
        speed=float(merged["speed"]),
        gracious=merged["gracious"],
        form=merged["form"],
        published=merged["published"],
        variables=variables,
        queries=texts,
        oracle=_filled(path, oracle, variables),
        language="sparql" if oracle.endswith((".sparql", ".rq")) else "sql",
    )
    _ = test.windowing  # refuses sizes and policies that make no sense
    return test


def _filled(path: Path, name: Any, variables: Mapping[str, Any]) -> str:
    """Return the text of a query template with its variables filled in."""
    try:
        text = (path.parent / str(name)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the query {name!r} cannot be read: {error}") from error
    try:
        return string.Template(text).substitute(variables)
    except (KeyError, ValueError) as error:
        raise InputError(f"{name}: the variable {error} has no value in {path}") from error
