"""Results of queries: multisets of bindings, and precision and recall over them.

A binding maps variables to terms. Terms of different engines are compared by what they mean: an IRI
may be in angle brackets or have a known prefix, and a literal that is a number is compared as a
number, whatever its datatype and spelling.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from xstream import InputError

__all__ = [
    "PREFIXES",
    "RELATIVE_TOLERANCE",
    "Bag",
    "Binding",
    "Score",
    "bag_size",
    "binding_of",
    "differing",
    "f1_of",
    "matched",
    "nearly_equal",
    "score",
    "shown",
]

#: Numbers that differ by less, relative to the larger one, are equal.
RELATIVE_TOLERANCE = 1e-9
PREFIXES = {
    "": "http://knoesis.wright.edu/ssw/",
    "om": "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#",
    "om-owl": "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "ssw": "http://knoesis.wright.edu/ssw/",
    "weather": "http://knoesis.wright.edu/ssw/ont/weather.owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_TYPED = re.compile(r'"(?P<text>.*)"(\^\^(?P<type>\S+)|@[\w-]+)?', re.DOTALL)
#: As YABench and some engines write them, without quotation marks: 92^^xsd:float
_BARE = re.compile(r"(?P<text>[^\s\"<>^]+)\^\^<?(?P<type>[^<>\s]+)>?")
_PREFIXED = re.compile(r"(?P<prefix>[A-Za-z][\w-]*|):(?P<rest>[^/].*)", re.DOTALL)
_IRI_TYPES = {"uri", "iri", "bnode"}
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf}


class Binding(NamedTuple):
    """The terms of one result: those that are text, and those that are numbers, by variable."""

    texts: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, float], ...]

    def terms(self) -> dict[str, str | float]:
        """Return all terms by variable."""
        return {**dict(self.texts), **dict(self.numbers)}


#: A multiset of bindings.
Bag = Counter[Binding]


class Score(NamedTuple):
    """Precision and recall of one window, and the sizes that they come from."""

    precision: float
    recall: float
    actual: int
    expected: int

    @property
    def right(self) -> bool:
        """Whether nothing is missing and nothing is too much."""
        return self.precision == 1.0 and self.recall == 1.0


def binding_of(terms: Mapping[str, Any]) -> Binding:
    """Return a binding; unbound variables (null) are left out.

    Terms are JSON scalars, or objects with `type`, `value` and `datatype` as in the JSON format of
    SPARQL results.

    >>> one = binding_of({"?s": {"type": "uri", "value": "ssw:System_1"}, "v": "43"})
    >>> two = binding_of({"v": 43.0, "s": "<http://knoesis.wright.edu/ssw/System_1>"})
    >>> one == two
    True
    """
    texts, numbers = [], []
    for name in sorted(terms, key=_variable):
        term = _term(terms[name])
        if isinstance(term, str):
            texts.append((_variable(name), term))
        elif term is not None:
            numbers.append((_variable(name), term))
    return Binding(tuple(texts), tuple(numbers))


def _variable(name: str) -> str:
    return name.lstrip("?$")


def _term(term: Any) -> str | float | None:
    """Return a term as text or number."""
    if isinstance(term, Mapping):
        if "value" not in term:
            raise InputError(f"a term needs a value: {dict(term)!r}")
        return _typed_term(term)
    if term is None:
        return None
    if isinstance(term, bool):
        return "true" if term else "false"
    if isinstance(term, int | float):
        return "NaN" if term != term else float(term) + 0.0
    if isinstance(term, str):
        return _plain_term(term)
    raise InputError(f"a term is a text, a number or an object with a value, not {term!r}")


def _typed_term(term: Mapping[str, Any]) -> str | float | None:
    value, kind = term["value"], str(term.get("type", "")).lower()
    if not isinstance(value, str):
        return _term(value)
    if kind in _IRI_TYPES:
        return _iri(value)
    if not kind and "datatype" not in term:
        return _plain_term(value)
    return _literal(value, str(term.get("datatype") or ""))


def _plain_term(text: str) -> str | float:
    """Return a term that is written as in Turtle, or a bare text."""
    quoted = _TYPED.fullmatch(text)
    if quoted:
        return _literal(quoted["text"], quoted["type"] or "")
    number = _literal(text, "")
    return _iri(number) if isinstance(number, str) else number


def _literal(text: str, datatype: str) -> str | float:
    if _NUMBER.fullmatch(text):
        return float(text) + 0.0  # -0.0 equals 0.0 but would have another key
    if text in _SPECIAL and datatype:
        return _SPECIAL[text]
    typed = None if datatype else _BARE.fullmatch(text) or _TYPED.fullmatch(text)
    if typed and typed["type"]:
        return _literal(typed["text"], typed["type"])
    return text


def _iri(text: str) -> str:
    if text.startswith("<") and text.endswith(">"):
        return text[1:-1]
    prefixed = _PREFIXED.fullmatch(text)
    if prefixed and prefixed["prefix"] in PREFIXES:
        return PREFIXES[prefixed["prefix"]] + prefixed["rest"]
    return text


def bag_size(bag: Bag) -> int:
    """Return the number of bindings, each as often as it occurs."""
    return sum(bag.values())


def matched(expected: Bag, actual: Bag) -> int:
    """Return the largest number of pairs of an expected and an actual binding that are equal."""
    exact = bag_size(expected & actual)
    if exact == min(bag_size(expected), bag_size(actual)):
        return exact
    groups: dict[Any, tuple[list[Sequence[float]], list[Sequence[float]]]]
    groups = defaultdict(lambda: ([], []))
    without_numbers = 0
    for side, bag in enumerate((expected, actual)):
        for binding, count in bag.items():
            if not binding.numbers:
                without_numbers += min(count, actual[binding]) if side == 0 else 0
                continue
            names, values = zip(*binding.numbers, strict=True)
            groups[binding.texts, names][side].extend([values] * count)
    return without_numbers + sum(_matched_numbers(*both) for both in groups.values())


def _matched_numbers(one: list[Sequence[float]], two: list[Sequence[float]]) -> int:
    """Match tuples of numbers, all of one length, each with at most one other."""
    if not one or not two:
        return 0
    if len(one[0]) == 1:
        return _matched_sorted(sorted(v[0] for v in one), sorted(v[0] for v in two))
    groups: dict[Any, tuple[list[Sequence[float]], list[Sequence[float]]]]
    groups = defaultdict(lambda: ([], []))
    clusters = [_clusters(values) for values in zip(*one, *two, strict=True)]
    for side, rows in enumerate((one, two)):
        for row in rows:
            key = tuple(cluster[value] for cluster, value in zip(clusters, row, strict=True))
            groups[key][side].append(row)
    return sum(_matched_near(*both) for both in groups.values())


def _clusters(values: Iterable[float]) -> dict[float, int]:
    """Return a number for each value, the same for values that may be equal, even indirectly."""
    found: dict[float, int] = {}
    last = number = 0.0
    for value in sorted(set(values), key=lambda value: (math.isnan(value), value)):
        if found and not _equal(last, value):
            number += 1
        found[value] = int(number)
        last = value
    return found


def _matched_near(one: list[Sequence[float]], two: list[Sequence[float]]) -> int:
    """Match the tuples of a group: those with other values can never equal them."""
    if not one or not two:
        return 0
    if all(row == one[0] for row in (*one, *two)):
        return min(len(one), len(two))
    taken: dict[int, int] = {}
    return sum(_augment(i, one, two, taken, set()) for i in range(len(one)))


def _matched_sorted(one: list[float], two: list[float]) -> int:
    """Match sorted numbers: what equals a number is a range, and ranges are in order too."""
    i = j = found = 0
    while i < len(one) and j < len(two):
        if _equal(one[i], two[j]):
            i, j, found = i + 1, j + 1, found + 1
        elif one[i] < two[j]:
            i += 1
        else:
            j += 1
    return found


def _augment(
    i: int,
    one: list[Sequence[float]],
    two: list[Sequence[float]],
    taken: dict[int, int],
    tried: set[int],
) -> bool:
    """Find a partner for one[i], moving others to new partners if necessary."""
    for j, values in enumerate(two):
        if j not in tried and all(map(_equal, one[i], values)):
            tried.add(j)
            if j not in taken or _augment(taken[j], one, two, taken, tried):
                taken[j] = i
                return True
    return False


def nearly_equal(one: Binding, two: Binding) -> bool:
    """Return whether two bindings are equal: texts exactly, numbers within the tolerance."""
    if one.texts != two.texts or len(one.numbers) != len(two.numbers):
        return False
    pairs = zip(one.numbers, two.numbers, strict=True)
    return all(a[0] == b[0] and _equal(a[1], b[1]) for a, b in pairs)


def _equal(one: float, two: float) -> bool:
    return math.isclose(one, two, rel_tol=RELATIVE_TOLERANCE)


def score(expected: Bag, actual: Bag) -> Score:
    """Return precision and recall of the actual bindings.

    >>> a, b = binding_of({"x": 1}), binding_of({"x": 2})
    >>> score(Bag({a: 1, b: 1}), Bag({a: 2}))
    Score(precision=0.5, recall=0.5, actual=2, expected=2)
    >>> score(Bag(), Bag())
    Score(precision=1.0, recall=1.0, actual=0, expected=0)
    """
    found, right, given = matched(expected, actual), bag_size(expected), bag_size(actual)
    if not right and not given:
        return Score(1.0, 1.0, 0, 0)
    if not right:
        return Score(0.0, 1.0, given, 0)
    if not given:
        return Score(1.0, 0.0, 0, right)
    return Score(found / given, found / right, given, right)


def f1_of(found: int, expected: int, actual: int) -> float:
    """Return F1 in one division, so that equal fractions are equal numbers.

    >>> f1_of(2, 3, 3) == f1_of(4, 6, 6), f1_of(0, 0, 0), f1_of(0, 0, 2)
    (True, 1.0, 0.0)
    """
    return 2 * found / (expected + actual) if expected or actual else 1.0


def differing(expected: Bag, actual: Bag) -> tuple[Bag, Bag]:
    """Return the bindings that are missing and those that are unexpected, to show them.

    >>> exact, near = (binding_of({"avg": value}) for value in (1 / 3, 0.33333333333))
    >>> differing(Bag({exact: 1}), Bag({near: 1}))
    (Counter(), Counter())
    """
    right, given = _rounded(expected), _rounded(actual)
    return right - given, given - right


def _rounded(bag: Bag) -> Bag:
    found: Bag = Bag()
    for (texts, numbers), count in bag.items():
        found[Binding(texts, tuple((n, float(f"{v:.9g}")) for n, v in numbers))] += count
    return found


def shown(bindings: Iterable[Binding], limit: int = 3) -> list[str]:
    """Return some bindings as short texts for messages: the last part of IRIs, plain numbers."""
    texts = []
    for binding in sorted(bindings)[:limit]:
        terms = sorted(binding.terms().items())
        texts.append(", ".join(f"{name} = {_short(value)}" for name, value in terms))
    return texts


def _short(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return re.split(r"[/#]", value)[-1] or value
