"""The seven queries of CSRBench as built-in tests, over its recorded input stream."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CSRBENCH", "BuiltIn"]

_PREFIXES = """
PREFIX om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
PREFIX ssw: <http://knoesis.wright.edu/ssw/>
"""


def _observation(obs: str, sensor: str, value: str, kind: str = "_AirTemperature") -> str:
    return (
        f"{obs} om:procedure {sensor} ; om:observedProperty weather:{kind} ; om:result {obs}_data ."
        f" {obs}_data om:floatValue {value} ."
    )


_ONE = _observation("?obs", "?sensor", "?value")
_ABOVE_80 = f"{_PREFIXES} SELECT ?sensor ?obs WHERE {{ {_ONE} FILTER(?value > 80) }}"
_HUMIDITY = _observation("?obs", "?sensor", "?value", "_RelativeHumidity")
_FIRST = _observation("?ob1", "?sensor", "?value1")
_OF_C1190 = _observation("?obs", "ssw:System_C1190", "?value")


@dataclass(frozen=True)
class BuiltIn:
    """A query with its windows."""

    title: str
    query: str
    size_ms: int
    slide_ms: int


CSRBENCH = {
    "csrbench-q1": BuiltIn("sensors and observations above 80", _ABOVE_80, 10_000, 10_000),
    "csrbench-q2": BuiltIn("as Q1, in short windows", _ABOVE_80, 1_000, 1_000),
    "csrbench-q3": BuiltIn(
        "relative humidity between 24 and 49",
        f"{_PREFIXES} SELECT ?sensor ?obs ?value WHERE {{ {_HUMIDITY} "
        "FILTER(?value > 24 && ?value < 49) }",
        4_000,
        4_000,
    ),
    "csrbench-q4": BuiltIn(
        "average of the values above 80",
        f"{_PREFIXES} SELECT (AVG(?value) AS ?avg) WHERE {{ {_ONE} FILTER(?value > 80) }}",
        4_000,
        4_000,
    ),
    "csrbench-q5": BuiltIn("as Q1, in overlapping windows", _ABOVE_80, 5_000, 1_000),
    "csrbench-q6": BuiltIn(
        "two observations of a sensor, the first above the second, both above 75",
        f"{_PREFIXES} SELECT ?sensor ?ob1 ?value1 ?obs WHERE {{ {_FIRST} {_ONE} "
        "FILTER(?value1 > ?value && ?value > 75) }",
        5_000,
        5_000,
    ),
    "csrbench-q7": BuiltIn(
        "observations above one of station C1190",
        f"{_PREFIXES} SELECT ?sensor ?ob1 WHERE {{ {_FIRST} {_OF_C1190} "
        "FILTER(?value1 > ?value) }",
        5_000,
        5_000,
    ),
}
