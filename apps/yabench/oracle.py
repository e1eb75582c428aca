"""The right results: what a query answers to the items of any range of time."""

from __future__ import annotations

import bisect
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from xstream import InputError
from xstream.console import require_package
from yabench.bindings import Bag, Binding, binding_of
from yabench.columns import Columns
from yabench.stream import Literal, RdfStream
from yabench.windows import Scope

__all__ = ["BORDER_POLICIES", "Oracle", "SparqlOracle"]

#: The policies for which an oracle may search borders by itself: one report for each range.
BORDER_POLICIES = ("window-close", "periodic")

#: Queries with these words may lose results when items are added.
_NOT_MONOTONE = re.compile(
    r"\b(AVG|SUM|COUNT|MIN|MAX|SAMPLE|GROUP_CONCAT|GROUP|HAVING|OPTIONAL|MINUS|EXISTS|LIMIT|OFFSET"
    r"|DISTINCT|REDUCED)\b",
    re.IGNORECASE,
)
_FLOAT = "http://www.w3.org/2001/XMLSchema#float"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_GRAPH = "urn:yabench:time:"


class Oracle(ABC):
    """Evaluates one query over the items of any range of time."""

    #: The distinct times of the items, in order.
    times: list[int]
    #: Whether items that are added never remove a result, so that new results can be counted.
    monotone: bool
    #: The variables of the query in their order.
    variables: tuple[str, ...]
    #: Whether `best_scope` usually finds borders, without evaluating the query for each.
    finds_borders = False

    @abstractmethod
    def results(self, scope: Scope) -> Bag:
        """Return the results for the items in a range."""

    @abstractmethod
    def items(self, scope: Scope) -> int:
        """Return the number of items in a range."""

    def columns(self, scope: Scope) -> Columns | None:
        """Return the same results as columns of numbers; None where the oracle has none."""
        return None

    def prepare(self, scopes: Sequence[Scope]) -> None:  # noqa: B027 - an oracle may do without
        """Evaluate the query for many ranges at once, where the oracle can."""

    def times_in(self, scope: Scope) -> list[int]:
        """Return the distinct times of a range."""
        first = bisect.bisect_left(self.times, scope.start)
        return self.times[first : bisect.bisect_left(self.times, scope.end)]

    def arrivals(self, scope: Scope, since: int) -> list[tuple[int, Binding]] | None:
        """Return the bindings of a range that are complete at `since` or later, and when.

        None where the oracle does not know.
        """
        return None

    def best_scope(
        self, actual: Bag, starts: Sequence[int], ends: Sequence[int], origin: Scope
    ) -> Scope | None:
        """Return the range of these borders whose results fit best; None: compare them all.

        An oracle that knows which items a result comes from has a faster way.
        """
        return None


class SparqlOracle(Oracle):
    """A SPARQL query over a stream of triples.

    The triples of each time are a graph; the query sees the union of the graphs of its range, so
    the stream is loaded once, and ranges that hold the same times are evaluated once.
    """

    def __init__(self, stream: RdfStream, query: str) -> None:
        require_package("pyoxigraph")
        import pyoxigraph

        self._ox = pyoxigraph
        self.query, self.times = query, stream.times
        self.monotone = not _NOT_MONOTONE.search(_without_strings(query))
        self._counts = [0]
        for triples in stream.items.values():
            self._counts.append(self._counts[-1] + len(triples))
        self._cache: dict[tuple[int, int], Bag] = {}
        self._store = pyoxigraph.Store()
        self._graphs = [pyoxigraph.NamedNode(f"{_GRAPH}{time}") for time in self.times]
        try:
            for graph, triples in zip(self._graphs, stream.items.values(), strict=True):
                self._store.extend(self._quad(*triple, graph) for triple in triples)
        except ValueError as error:
            raise InputError(f"the stream has an invalid IRI: {error}") from error
        self.variables = self._variables()

    def _quad(self, subject: str, predicate: str, value: str | Literal, graph: Any) -> Any:
        ox = self._ox
        if isinstance(value, str):
            term = self._node(value)
        elif value.language:
            term = ox.Literal(value.text, language=value.language)
        else:
            # Sums of xsd:float are rounded to 24 bits, which is less than engines are judged by.
            name = _DOUBLE if value.datatype == _FLOAT else value.datatype
            kind = ox.NamedNode(name) if name else None
            term = ox.Literal(value.text, datatype=kind)
        return ox.Quad(self._node(subject), ox.NamedNode(predicate), term, graph)

    def _node(self, text: str) -> Any:
        ox = self._ox
        return ox.BlankNode(text[2:]) if text.startswith("_:") else ox.NamedNode(text)

    def _variables(self) -> tuple[str, ...]:
        solutions = self._solutions([])
        return tuple(str(variable).lstrip("?") for variable in solutions.variables)

    def _solutions(self, graphs: Sequence[Any]) -> Any:
        try:
            solutions = self._store.query(self.query, default_graph=list(graphs))
        except (SyntaxError, ValueError) as error:
            raise InputError(f"the oracle's query is not valid SPARQL: {error}") from error
        if not hasattr(solutions, "variables"):
            raise InputError("the oracle's query must be a SELECT")
        return solutions

    def results(self, scope: Scope) -> Bag:
        """Return the results for the items in a range."""
        first, last = (bisect.bisect_left(self.times, time) for time in scope)
        last = max(first, last)
        if first == last:
            first = last = 0
        found = self._cache.get((first, last))
        if found is None:
            solutions = self._solutions(self._graphs[first:last])
            found = self._cache[first, last] = Bag(self._binding(row) for row in solutions)
        return found

    def _binding(self, row: Any) -> Binding:
        terms: dict[str, Any] = {}
        for name in self.variables:
            term = row[name]
            if isinstance(term, self._ox.Literal):
                kind = term.datatype.value
                terms[name] = {"type": "literal", "value": term.value, "datatype": kind}
            elif term is not None:
                terms[name] = {"type": "uri", "value": term.value}
        return binding_of(terms)

    def items(self, scope: Scope) -> int:
        """Return the number of triples in a range."""
        first, last = (bisect.bisect_left(self.times, time) for time in scope)
        return self._counts[max(first, last)] - self._counts[first]


def _without_strings(query: str) -> str:
    """Return a query without its texts, IRIs and variables, which may contain keywords."""
    return re.sub(r'"[^"]*"|<[^<>\s]*>|[?$]\w+|#[^\n]*', " ", query)
