"""`Partition`: the replicas of a stream that was divided by a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xstream.stream import Stream

__all__ = ["Partition"]


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The replicas of a stream that was divided by a key (`Stream.partition`)."""

    streams: tuple[Stream, ...]

    def each(self, declare: Callable[[Stream], Stream]) -> Partition:
        """Declare the same operators behind every replica.

        >>> import xstream as xs
        >>> q = xs.Query()
        >>> src = q.source(xs.io.iterable([1, 2, 3], out={"key": int}))
        >>> doubled = src.partition(by="key", replicas=2).each(
        ...     lambda part: part.map(lambda key: 2 * key, out=int)
        ... )
        >>> out = doubled.merge().collect()
        >>> q.run()[out]
        [2, 4, 6]
        """
        return Partition(tuple(declare(stream) for stream in self.streams))

    def merge(self, by: str | None = None, name: str | None = None) -> Stream:
        """Bring the replicas together again.

        Under `df`, results come in the order of the tuples that they are the results of, whichever
        replica and thread they come from; under the other schedulers in the order of arrival. `by`
        names an integer field that ascends in every replica and decides instead.
        """
        first, *others = self.streams
        return first.merge(*others, by=by, name=name)

    def __iter__(self) -> Iterator[Stream]:
        return iter(self.streams)

    def __len__(self) -> int:
        return len(self.streams)
