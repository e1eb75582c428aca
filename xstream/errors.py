"""All errors that xstream raises.

    XStreamError
    ├── SigSegError
    │   ├── NotAdjacentError      (ValueError)   append across a gap or an overlap
    │   ├── TimebaseError         (ValueError)   signals with different rates or origins
    │   ├── SegmentRangeError     (IndexError)   samples outside the segment
    │   ├── DtypeError            (TypeError)    a dtype that is not supported, or mixed
    │   ├── ManagerError          (ValueError)   an unknown manager, or two mixed in one operation
    │   └── SegmentMemoryError    (MemoryError)  out of memory
    ├── QueryError
    │   ├── SchemaError           (TypeError)    a stream does not fit the port it is connected to
    │   ├── GraphError            (ValueError)   an unconnected port, a duplicate name
    │   └── KernelError           (TypeError)    a kernel does not compile as declared
    ├── OperatorError             (RuntimeError) an operator failed on a tuple
    ├── InputError                (ValueError)   input data that cannot be used
    └── MissingPackageError       (ImportError)  an optional package is not installed

Each also derives from the built-in exception that a caller would expect: `except IndexError`
catches a SegmentRangeError.
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
    """The base class of all errors of xstream."""


class SigSegError(XStreamError):
    """An invalid operation on a signal segment."""


class NotAdjacentError(SigSegError, ValueError):
    """Two segments cannot be joined: the second does not start where the first stops."""


class TimebaseError(SigSegError, ValueError):
    """Two segments cannot be joined: they belong to different signals."""


class SegmentRangeError(SigSegError, IndexError):
    """The requested samples are outside the segment."""


class DtypeError(SigSegError, TypeError):
    """A dtype that segments or the receiver do not support, or segments of different dtypes."""


class ManagerError(SigSegError, ValueError):
    """An unknown memory manager, or segments of two managers in one operation."""


class SegmentMemoryError(SigSegError, MemoryError):
    """There is not enough memory for a segment."""


class QueryError(XStreamError):
    """An error in the declaration of a query."""


class SchemaError(QueryError, TypeError):
    """A stream does not fit the port that it is connected to."""


class GraphError(QueryError, ValueError):
    """An error in the graph: an unconnected port, a stream of another query."""


class KernelError(QueryError, TypeError):
    """A kernel does not compile, or does not return what was declared."""


class OperatorError(XStreamError, RuntimeError):
    """An operator failed on a tuple; the message names the operator, the port and the tuple."""


class InputError(XStreamError, ValueError):
    """Input data or an option that cannot be used; the message says what is wrong and where."""


class MissingPackageError(XStreamError, ImportError):
    """An optional package is not installed; the message has the command that installs it."""
