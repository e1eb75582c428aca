"""YABench's definitions, written down as slowly and plainly as possible, to compare with."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

Row = dict[str, Any]
Item = dict[str, Any]
TOLERANCE = 1e-9


def equal_terms(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return abs(one - two) <= TOLERANCE * max(abs(one), abs(two))
    return type(one) is type(two) and one == two


def equal_rows(one: Row, two: Row) -> bool:
    return one.keys() == two.keys() and all(equal_terms(one[name], two[name]) for name in one)


def most_pairs(one: list[Row], two: list[Row]) -> int:
    """Try every way to pair two short lists."""
    if len(one) > len(two):
        one, two = two, one
    return max(
        sum(equal_rows(a, b) for a, b in zip(one, order, strict=True))
        for order in permutations(two, len(one))
    )


def scope_of(index: int, size: int, slide: int) -> tuple[int, int]:
    return max(0, index * slide - size), index * slide


def precision_recall(expected: list[Row], actual: list[Row]) -> tuple[Fraction, Fraction]:
    if not expected and not actual:
        return Fraction(1), Fraction(1)
    if not expected:
        return Fraction(0), Fraction(1)
    if not actual:
        return Fraction(1), Fraction(0)
    found = most_pairs(expected, actual)
    return Fraction(found, len(actual)), Fraction(found, len(expected))


def f1(precision: Fraction, recall: Fraction) -> Fraction:
    total = precision + recall
    return 2 * precision * recall / total if total else Fraction(0)


def best_borders(
    items: list[Item], query: Any, actual: list[Row], scope: tuple[int, int], slide: int
) -> tuple[int, int]:
    """Try all borders within one slide; best F1, then the smallest shift, then the earliest."""
    times = {item["time"] for item in items}
    times |= {max(times) + 1}
    start, end = scope
    tried = []
    for low in times | {start}:
        for high in times | {end}:
            if low <= high and abs(low - start) <= slide and abs(high - end) <= slide:
                content = [item for item in items if low <= item["time"] < high]
                fit = f1(*precision_recall(query(content), actual))
                tried.append((-fit, abs(low - start) + abs(high - end), low, high))
    return min(tried)[2:]


# -- the queries of CSRBench over records ----------------------------------------------------------


def above(content: list[Item], kind: str, low: float, high: float = 1e9) -> list[Item]:
    return [item for item in content if item["property"] == kind and low < item["value"] < high]


def csrbench(number: int, content: list[Item]) -> list[Row]:
    air = [item for item in content if item["property"] == "AirTemperature"]
    if number in (1, 2, 5):
        hot = above(content, "AirTemperature", 80)
        return [{"sensor": item["station"], "obs": item["observation"]} for item in hot]
    if number == 3:
        return [
            {"sensor": item["station"], "obs": item["observation"], "value": item["value"]}
            for item in above(content, "RelativeHumidity", 24, 49)
        ]
    if number == 4:
        values = [item["value"] for item in above(content, "AirTemperature", 80)]
        return [{"avg": sum(values) / len(values) if values else 0.0}]
    if number == 6:
        return [
            {
                "sensor": one["station"],
                "ob1": one["observation"],
                "value1": one["value"],
                "obs": two["observation"],
            }
            for one in air
            for two in air
            if one["station"] == two["station"] and one["value"] > two["value"] > 75
        ]
    base = [item for item in air if item["station"].endswith("System_C1190")]
    return [
        {"sensor": one["station"], "ob1": one["observation"]}
        for one in air
        for two in base
        if one["value"] > two["value"]
    ]
