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
    """The base class of all errors of xstream.

    >>> import xstream as xs
    >>> try:
    ...     xs.io.array([1.0], rate_hz=-1.0)
    ... except xs.XStreamError as error:  # any error of xstream
    ...     print(type(error).__name__)
    TimebaseError
    """


class SigSegError(XStreamError):
    """An invalid operation on a signal segment.

    >>> import numpy as np, xstream as xs
    >>> xs.SigSeg(np.zeros((2, 2)))
    Traceback (most recent call last):
    xstream.errors.SigSegError: ...
    """


class NotAdjacentError(SigSegError, ValueError):
    """Two segments cannot be joined: the second does not start where the first stops.

    >>> import numpy as np, xstream as xs
    >>> segment = xs.SigSeg(np.zeros(4))
    >>> segment.append(segment)
    Traceback (most recent call last):
    xstream.errors.NotAdjacentError: cannot append [0, 4) to [0, 4): ...
    """


class TimebaseError(SigSegError, ValueError):
    """Two segments cannot be joined: they belong to different signals.

    >>> import xstream as xs
    >>> xs.Timebase(rate_hz=0.0)
    Traceback (most recent call last):
    xstream.errors.TimebaseError: ...
    """


class SegmentRangeError(SigSegError, IndexError):
    """The requested samples are outside the segment.

    >>> import numpy as np, xstream as xs
    >>> xs.SigSeg(np.zeros(4)).subseg(2, 9)
    Traceback (most recent call last):
    xstream.errors.SegmentRangeError: ...
    """


class DtypeError(SigSegError, TypeError):
    """A dtype that segments or the receiver do not support, or segments of different dtypes.

    >>> import numpy as np, xstream as xs
    >>> xs.SigSeg(np.array(["text"]))
    Traceback (most recent call last):
    xstream.errors.DtypeError: ...
    """


class ManagerError(SigSegError, ValueError):
    """An unknown memory manager, or segments of two managers in one operation.

    >>> import xstream as xs
    >>> xs.memory_manager("copy-never")
    Traceback (most recent call last):
    xstream.errors.ManagerError: ...
    """


class SegmentMemoryError(SigSegError, MemoryError):
    """There is not enough memory for a segment.

    >>> import xstream as xs
    >>> issubclass(xs.SegmentMemoryError, MemoryError)
    True
    """


class QueryError(XStreamError):
    """An error in the declaration of a query.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> out = query.source(xs.io.array(np.zeros(4), window=2)).count()
    >>> query.run(scheduler="fastest")
    Traceback (most recent call last):
    xstream.errors.QueryError: ...
    """


class SchemaError(QueryError, TypeError):
    """A stream does not fit the port that it is connected to.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> numbers = query.source(xs.io.samples(np.zeros(4)))
    >>> numbers.rewindow(4)
    Traceback (most recent call last):
    xstream.errors.SchemaError: ...
    """


class GraphError(QueryError, ValueError):
    """An error in the graph: an unconnected port, a stream of another query.

    >>> import numpy as np, xstream as xs
    >>> query, other = xs.Query(), xs.Query()
    >>> one = query.source(xs.io.array(np.zeros(4), window=2))
    >>> one.zip(other.source(xs.io.array(np.zeros(4), window=2)))
    Traceback (most recent call last):
    xstream.errors.GraphError: ...
    """


class KernelError(QueryError, TypeError):
    """A kernel does not compile, or does not return what was declared.

    >>> import numpy as np, xstream as xs
    >>> @xs.kernel
    ... def wrong(window):
    ...     return window.no_such_method()
    >>> query = xs.Query()
    >>> query.source(xs.io.array(np.zeros(4), window=2)).map(wrong)
    Traceback (most recent call last):
    xstream.errors.KernelError: ...
    """


class OperatorError(XStreamError, RuntimeError):
    """An operator failed on a tuple; the message names the operator, the port and the tuple.

    >>> import numpy as np, xstream as xs
    >>> query = xs.Query()
    >>> out = query.source(xs.io.array(np.zeros(4), window=2)).map(lambda window: 1 / 0).collect()
    >>> query.run()
    Traceback (most recent call last):
    xstream.errors.OperatorError: ...
    """


class InputError(XStreamError, ValueError):
    """Input data or an option that cannot be used; the message says what is wrong and where.

    >>> import xstream as xs
    >>> query = xs.Query()
    >>> out = query.source(xs.io.wav("no-such-file.wav", window=1024)).count()
    Traceback (most recent call last):
    xstream.errors.InputError: ...
    """


class MissingPackageError(XStreamError, ImportError):
    """An optional package is not installed; the message has the command that installs it.

    >>> import sys, xstream as xs
    >>> sys.modules["zmq"] = None  # as if it were not installed
    >>> query = xs.Query()
    >>> query.source(xs.io.zmq("tcp://127.0.0.1:5555", dtype="float32", rate_hz=8000.0))
    Traceback (most recent call last):
    xstream.errors.MissingPackageError: ...
    >>> del sys.modules["zmq"]
    """
