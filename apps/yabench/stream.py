"""Streams of RDF: triples with a time, one on each line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from xstream import InputError

__all__ = ["OPENERS", "Literal", "RdfStream", "Triple", "read_rdf_stream", "triple_line"]

_LINE = re.compile(
    r"\s*(?P<s><[^<>\s]+>|_:\S+)\s+(?P<p><[^<>\s]+>)\s+(?P<o>.+?)\s+"
    r'(?:\.\s+)?"(?P<time>\d+)"(\^\^\S+)?\s*\.?\s*'
)
_QUOTED = re.compile(
    r'"(?P<text>(?:[^"\\]|\\.)*)"(?:\^\^<?(?P<type>[^<>\s]+)>?|@(?P<language>[\w-]+))?'
)
#: YABench writes literals without quotation marks: 92^^http://www.w3.org/2001/XMLSchema#float
_BARE = re.compile(r"(?P<text>[^\s\"<>^]+)\^\^<?(?P<type>[^<>\s]+)>?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
#: How compressed files are opened, by the ending of their names.
OPENERS: dict[str, Callable[..., IO[Any]]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal with its datatype or language."""

    text: str
    datatype: str = ""
    language: str = ""


#: Subject, predicate and object; IRIs without brackets, blank nodes with their `_:`.
Triple = tuple[str, str, str | Literal]


@dataclass(frozen=True)
class RdfStream:
    """Triples by their time in ms, in order of time."""

    items: dict[int, list[Triple]]

    @property
    def times(self) -> list[int]:
        """The distinct times in order."""
        return list(self.items)

    @property
    def last_ms(self) -> int:
        """The time of the last triples."""
        return next(reversed(self.items))


def read_rdf_stream(path: Path) -> RdfStream:
    """Read a stream: on each line a triple and its time in quotation marks; .xz, .gz or plain."""
    items: dict[int, list[Triple]] = defaultdict(list)
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if not found or int(found["time"]) >= 2**62:
            raise InputError(
                f'{path}, line {number}: expected a triple and its time in ms as "1000", not '
                f"{line.strip()[:80]!r}"
            )
        value = _object(found["o"], path, number)
        items[int(found["time"])].append((_node(found["s"]), found["p"][1:-1], value))
    if not items:
        raise InputError(f"{path} has no triples")
    return RdfStream(dict(sorted(items.items())))


def _lines(path: Path) -> Iterator[str]:
    opener = OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            yield from lines
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _node(text: str) -> str:
    return text[1:-1] if text.startswith("<") else text


def _object(text: str, path: Path, number: int) -> str | Literal:
    if (text.startswith("<") and text.endswith(">")) or text.startswith("_:"):
        return _node(text)
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        found = _ESCAPE.sub(_unescaped, quoted["text"])
        return Literal(found, quoted["type"] or "", quoted["language"] or "")
    bare = _BARE.fullmatch(text)
    if bare:
        return Literal(bare["text"], bare["type"])
    if _NUMBER.fullmatch(text):
        return Literal(text, _DECIMAL)
    raise InputError(f"{path}, line {number}: {text[:80]!r} is neither an IRI nor a literal")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "uU" and len(code) > 1:
        point = int(code[1:], 16)
        return chr(point) if point < 0x110000 else "\ufffd"
    return _ESCAPES.get(code, code)


def triple_line(triple: Triple, time_ms: int) -> str:
    """Return a line of a stream file.

    >>> triple_line(("a:s", "a:p", Literal("1.5", "xsd:float")), 10)
    '<a:s> <a:p> "1.5"^^<xsd:float> "10"'
    """
    subject, predicate, value = triple
    return f'{_written(subject)} <{predicate}> {_written(value)} "{time_ms}"'


def _written(term: str | Literal) -> str:
    if isinstance(term, str):
        return term if term.startswith("_:") else f"<{term}>"
    escaped = term.text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")
    suffix = f"^^<{term.datatype}>" if term.datatype else ""
    return f'"{escaped}"{suffix}' + (f"@{term.language}" if term.language else "")
