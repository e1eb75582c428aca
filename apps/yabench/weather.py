"""The weather scenario: stations that report the air temperature at a fixed interval.

gen(s, i, d, r): `stations` stations report every `interval_ms` for `duration_ms`; `seed` chooses
the time of each station's first report within the interval, and the temperatures. The same
parameters give the same stream on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream import InputError
from yabench.bindings import PREFIXES, Bag, binding_of
from yabench.stream import Literal, RdfStream, Triple

__all__ = [
    "PROPERTY",
    "Records",
    "as_records",
    "generate",
    "observation_iri",
    "rdf_of",
    "station_iri",
    "triples",
]

PROPERTY = "AirTemperature"
MOST_ITEMS = 100_000_000
#: Temperatures in degrees Fahrenheit: the mean of all stations, and how far stations differ. With
#: this mean 49 % of the values are above 50, as in the published results of Experiment 1.
_MEAN, _BETWEEN_STATIONS, _WITHIN_STATION = 49.8, 8.0, 6.0
_SSW, _OM, _WEATHER = PREFIXES["ssw"], PREFIXES["om-owl"], PREFIXES["weather"]
_TYPE = PREFIXES["rdf"] + "type"
_FLOAT = PREFIXES["xsd"] + "float"


@dataclass(frozen=True)
class Records:
    """Observations in order of time; those of one time in order of their stations."""

    time: NDArray[np.int64]
    station: NDArray[np.int64]
    observation: NDArray[np.int64]
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)

    def groups(self) -> Iterator[tuple[int, slice]]:
        """Yield each time with the rows that have it."""
        starts = np.flatnonzero(np.diff(self.time, prepend=-1))
        ends = np.append(starts[1:], len(self.time))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield int(self.time[start]), slice(start, end)

    def table(self) -> Any:
        """Return the records as an Arrow table."""
        import pyarrow as pa

        codes = pa.array(np.zeros(len(self), np.int8))
        return pa.table(
            {
                "time": self.time,
                "observation": self.observation,
                "station": self.station,
                "property": pa.DictionaryArray.from_arrays(codes, pa.array([PROPERTY])),
                "value": self.value,
            }
        )


def generate(stations: int, interval_ms: int, duration_ms: int, seed: int) -> Records:
    """Generate the observations of a weather stream.

    >>> records = generate(stations=2, interval_ms=1000, duration_ms=3000, seed=1)
    >>> len(records), bool((np.diff(records.time) >= 0).all())
    (6, True)
    """
    if min(stations, interval_ms, duration_ms) < 1 or not 0 <= seed < 2**63:
        raise InputError("stations, interval and duration are at least 1, and a seed at least 0")
    most = -(-duration_ms // interval_ms)
    if stations * most > MOST_ITEMS:
        raise InputError(f"{stations * most:,} observations are more than {MOST_ITEMS:,}")
    # Philox numbers are defined by key and counter, so they do not depend on the platform.
    random = np.random.Generator(np.random.Philox(seed))
    first = random.integers(0, interval_ms, stations)
    base = random.random(stations)
    # Each round lies in an interval of its own, so all rounds have the same order of stations.
    order = np.argsort(first, kind="stable")
    counts = [
        int(np.searchsorted(first[order] + interval_ms * k, duration_ms)) for k in range(most)
    ]
    ends = np.cumsum(counts)
    time, station, observation = (np.empty(ends[-1], np.int64) for _ in range(3))
    value = np.empty(ends[-1])
    level = _MEAN + _BETWEEN_STATIONS * _bell(base)
    for number, (end, count) in enumerate(zip(ends, counts, strict=True)):
        part, chosen = slice(end - count, end), order[:count]
        temperature = level + _WITHIN_STATION * _bell(random.random(stations))
        time[part] = first[chosen] + interval_ms * number
        station[part] = chosen
        observation[part] = chosen * most + number
        value[part] = np.round(temperature[chosen], 1)
    return Records(time, station, observation, value)


def _bell(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers around 0, mostly within 2 of it, by operations that round alike everywhere."""
    centred = 2.0 * uniform - 1.0
    return np.asarray(centred * (1.0 + centred * centred))


def station_iri(station: int) -> str:
    """Return the IRI of a station."""
    return f"{_SSW}System_{station}"


def observation_iri(observation: int) -> str:
    """Return the IRI of an observation."""
    return f"{_SSW}Observation_{PROPERTY}_{observation}"


_GENERATED = re.compile(rf"{re.escape(_SSW)}(?:System|Observation_{PROPERTY})_(\d+)")


def as_records(bag: Bag) -> Bag:
    """Return bindings with the numbers of stations and observations in place of their IRIs."""
    found: Bag = Bag()
    for binding, count in bag.items():
        terms = binding.terms()
        for name, text in binding.texts:
            iri = _GENERATED.fullmatch(text)
            terms[name] = int(iri[1]) if iri else text
        found[binding_of(terms)] += count
    return found


def triples(station: int, observation: int, value: float) -> list[Triple]:
    """Return an observation as seven triples."""
    subject, result = observation_iri(observation), f"{_SSW}MeasureData_{PROPERTY}_{observation}"
    return [
        (subject, _TYPE, f"{_WEATHER}TemperatureObservation"),
        (subject, f"{_OM}observedProperty", f"{_WEATHER}_{PROPERTY}"),
        (subject, f"{_OM}procedure", station_iri(station)),
        (subject, f"{_OM}result", result),
        (result, _TYPE, f"{_OM}MeasureData"),
        (result, f"{_OM}floatValue", Literal(repr(value), _FLOAT)),
        (result, f"{_OM}uom", f"{_WEATHER}fahrenheit"),
    ]


def rdf_of(records: Records) -> RdfStream:
    """Return the RDF form of a stream."""
    items: dict[int, list[Triple]] = {}
    for time, rows in records.groups():
        items[time] = [
            triple
            for row in zip(
                records.station[rows].tolist(),
                records.observation[rows].tolist(),
                records.value[rows].tolist(),
                strict=True,
            )
            for triple in triples(*row)
        ]
    return RdfStream(items)
