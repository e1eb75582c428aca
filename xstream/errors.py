"""Every error that xstream raises on purpose, in one tree.

    XStreamError
    ├── SigSegError
    │   ├── NotAdjacentError      (ValueError)   append across a gap or an overlap
    │   ├── TimebaseError         (ValueError)   two signals with different rates or origins
    │   ├── SegmentRangeError     (IndexError)   samples outside the segment
    │   ├── DtypeError            (TypeError)    a dtype that cannot be held, mixed or expressed
    │   ├── ManagerError          (ValueError)   an unknown manager, or two mixed in one operation
    │   └── SegmentMemoryError    (MemoryError)  the memory asked for cannot be had
    ├── QueryError
    │   ├── SchemaError           (TypeError)    a stream does not fit the port it is connected to
    │   ├── GraphError            (ValueError)   a port left unconnected, a name used twice
    │   └── KernelError           (TypeError)    a kernel that does not compile, or not as declared
    ├── OperatorError             (RuntimeError) an operator failed on a tuple; names all three
    ├── InputError                (ValueError)   data from outside that cannot be used
    └── MissingPackageError       (ImportError)  an optional package is not installed

Each also derives from the built-in exception that a caller would expect, so that
`except IndexError` catches a segment range as it does a list's.
"""

from __future__ import annotations

__all__ = [
    "DtypeError",
    "GraphError",
    "InputError",
    "KernelError",
    "ManagerError",
    "MissingPackageError",
    "NotAdjacentError",
    "OperatorError",
    "QueryError",
    "SchemaError",
    "SegmentMemoryError",
    "SegmentRangeError",
    "SigSegError",
    "TimebaseError",
    "XStreamError",
]


class XStreamError(Exception):
    """The root of the tree: `except xs.XStreamError` catches everything below."""


class SigSegError(XStreamError):
    """Something asked of a signal segment that it cannot do."""


class NotAdjacentError(SigSegError, ValueError):
    """Two segments were to be joined and the second does not start where the first stops."""


class TimebaseError(SigSegError, ValueError):
    """Two segments were to be joined and they belong to different signals."""


class SegmentRangeError(SigSegError, IndexError):
    """Samples were asked for that lie outside the segment."""


class DtypeError(SigSegError, TypeError):
    """A dtype that a segment cannot hold or mix, or that a receiver cannot express."""


class ManagerError(SigSegError, ValueError):
    """An unknown memory manager, or two of them mixed in one operation."""


class SegmentMemoryError(SigSegError, MemoryError):
    """The memory for a segment could not be had."""


class QueryError(XStreamError):
    """A query that cannot run as it is declared."""


class SchemaError(QueryError, TypeError):
    """A stream does not fit the port that it is connected to."""


class GraphError(QueryError, ValueError):
    """The graph itself is wrong: a port left unconnected, a stream of another query."""


class KernelError(QueryError, TypeError):
    """A kernel does not compile, or does not return what was declared."""


class OperatorError(XStreamError, RuntimeError):
    """An operator failed while it worked on a tuple; the message names operator, port and tuple."""


class InputError(XStreamError, ValueError):
    """Data from outside that cannot be used; the message says what is wrong and where."""


class MissingPackageError(XStreamError, ImportError):
    """An optional package is not installed; the message has the command that installs it."""
