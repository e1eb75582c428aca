"""`@xs.kernel`: a Python function that the engine runs compiled, without Python."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from xstream.errors import KernelError
from xstream.kernels.pieces import Pieces
from xstream.kernels.rolling import Rolling
from xstream.sigseg import SigSeg

__all__ = ["Kernel", "kernel"]

#: Parameters with a meaning of their own; all others take fields by name, or arguments.
SPECIAL = ("state", "out")


class Kernel:
    """A function over arrays and scalars, compiled when a query uses it.

    It can still be called as a plain function.

    >>> import numpy as np, xstream as xs
    >>> @xs.kernel(out={"loud": bool, "level": float})
    ... def louder(window, alpha):
    ...     return window.std() > alpha, window.std()
    >>> louder
    <kernel louder(window, alpha)>
    >>> louder.out_fields
    (('loud', <class 'bool'>), ('level', <class 'float'>))
    >>> louder.data_parameters()
    ('window', 'alpha')
    >>> louder(np.zeros(4), 0.5)[0]
    np.False_
    """

    def __init__(
        self,
        function: FunctionType,
        state: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
        out: Any = None,
        at_end: bool = False,
        each: bool = False,
        pieces: bool = False,
    ) -> None:
        self.function = function
        #: Whether segments are walked, instead of being read as arrays.
        self.pieces = pieces
        self.at_end = at_end
        self.each = each
        #: Whether it reads its only segment by `part` alone, each sample once. Loops over single
        #: samples in front of it then compute a part when it is read.
        self.in_parts = False
        #: The parameter whose samples become those of `out`, one by one, and may be overwritten.
        self.in_place: str | None = None
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.out = out
        self.states = _states(self.name, state)
        self.state_names = tuple(state) if isinstance(state, Mapping) else None
        self.parameters = _parameters(self.name, function)
        if bool(self.states) != ("state" in self.parameters):
            what = (
                "declares state= but has no parameter"
                if self.states
                else "has no state= for its parameter"
            )
            raise KernelError(f"kernel {self.name!r} {what} 'state'")
        if each and any(isinstance(kept, Rolling) for kept in self.states):
            raise KernelError(f"kernel {self.name!r}: with each=True, state is arrays only")
        if each and pieces:
            raise KernelError(
                f"kernel {self.name!r}: with each=True it gets samples, and pieces=True has no "
                "meaning"
            )
        if each and (at_end or "out" in self.parameters):
            what = "at_end=True" if at_end else "a parameter 'out'"
            raise KernelError(
                f"kernel {self.name!r}: with each=True it returns a result for every sample, and "
                f"{what} has no meaning"
            )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.pieces and arguments:
            arguments = (_walkable(arguments[0]), *arguments[1:])
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(self.parameters)})>"

    @property
    def out_fields(self) -> tuple[tuple[str, Any], ...] | None:
        """The declared outputs, by name; None if numba infers them."""
        if self.out is None:
            return None
        if isinstance(self.out, Mapping):
            return tuple(self.out.items())
        if isinstance(self.out, tuple):
            return tuple((f"f{i}", out) for i, out in enumerate(self.out))
        return (("value", self.out),)

    def data_parameters(self) -> tuple[str, ...]:
        """The parameters that take fields and arguments."""
        return tuple(name for name in self.parameters if name not in SPECIAL)


def _walkable(window: Any) -> Any:
    """What a kernel with `pieces=True` gets in a plain call with a segment or an array."""
    if isinstance(window, np.ndarray):
        return Pieces([window])
    return Pieces(window.chunks()) if isinstance(window, SigSeg) else window


def _parameters(name: str, function: FunctionType) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise KernelError(f"kernel {name!r}: parameter '{parameter}' must be positional")
    return tuple(parameter.name for parameter in parameters)


def _states(name: str, state: Any) -> tuple[npt.NDArray[Any] | Rolling, ...]:
    if state is None:
        return ()
    values = tuple(state.values()) if isinstance(state, Mapping) else (state,)
    for key in state if isinstance(state, Mapping) else ():
        if not (isinstance(key, str) and key.isidentifier()) or keyword.iskeyword(key):
            raise KernelError(f"kernel {name!r}: state {key!r} is not a name")
        if key.startswith("_"):
            raise KernelError(f"kernel {name!r}: state {key!r} begins with an underscore")
    return tuple(
        value if isinstance(value, Rolling) else _state_array(name, value) for value in values
    )


def _state_array(name: str, value: Any) -> npt.NDArray[Any]:
    array = np.atleast_1d(np.array(value))
    if array.ndim != 1 or array.dtype.hasobject:
        raise KernelError(
            f"kernel {name!r}: state is numbers, one-dimensional arrays of them, or xs.Rolling"
        )
    return array


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(
    *,
    state: Any = None,
    out: Any = None,
    at_end: bool = False,
    each: bool = False,
    pieces: bool = False,
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    state: Any = None,
    out: Any = None,
    at_end: bool = False,
    each: bool = False,
    pieces: bool = False,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a function an operator that runs compiled.

    A parameter takes the field of the tuple that has its name (a segment arrives as a read-only
    array, a scalar as a number); fields that no parameter names are not read. The other parameters
    take the arguments that are given with the kernel. The only field of a stream goes to the first
    parameter, and if the names do not match, fields are taken in order, then arguments. It
    returns a flag for `filter`; a number, an array, or a tuple of those for `map`.

    >>> import numpy as np, xstream as xs
    >>> @xs.kernel
    ... def louder(window, alpha):
    ...     return np.std(window) > alpha

    `state=` is an array, or a dictionary of them, that the engine keeps between calls; the kernel
    changes it in place through its parameter `state`, and `xs.grow` makes an array longer.
    In `map`, `out=` with a parameter `out` gives the kernel an array to fill instead of returning
    one. In `iterate`, every call of `out.emit(...)` emits a tuple with the fields that `out=`
    declares: a scalar type, or `xs.Out` for a segment.

    >>> @xs.kernel(state={"last": np.zeros(1)}, out=float)
    ... def rises(x, state, out):
    ...     if x > state.last[0]:
    ...         out.emit(x - state.last[0])
    ...     state.last[0] = x

    In `iterate`, `out.start` is the index of the first sample of the tuple's (first) segment. With
    `at_end=True` the kernel is called once more when the streams have ended, on empty inputs, and
    `out.ended` is true in that call, so that it can emit what it has kept.

    With `each=True` the function processes one sample: `map` applies it to every sample of a
    segment, or to every tuple of scalars; `filter` passes the samples for which it is true. Results
    keep the type of the samples, unless `out=` declares another one.

    >>> @xs.kernel(each=True)
    ... def gain(x, factor):
    ...     return x * factor
    >>> q = xs.Query()
    >>> src = q.source(xs.io.array(np.arange(3, dtype=np.float32)))
    >>> out = src.map(gain, 1.5).collect()
    >>> np.asarray(q.run()[out][0])
    array([0. , 1.5, 3. ], dtype=float32)

    With `pieces=True` a segment arrives not as an array but as what it is, a list of pieces, and
    is never copied into one: `window.pieces()` yields an array for each, `window.part(first, n)` is
    an array of up to `n` samples, and `len(window)` is their number.

    >>> @xs.kernel(pieces=True)
    ... def peak(window):
    ...     highest = -np.inf
    ...     for piece in window.pieces():
    ...         highest = max(highest, piece.max())
    ...     return highest
    >>> q = xs.Query()
    >>> src = q.source(xs.io.array(np.arange(6, dtype=np.float32), window=2))
    >>> out = src.rewindow(3).map(peak).collect()
    >>> q.run()[out]
    [2.0, 5.0]
    """
    if function is None:
        return lambda actual: kernel_of(actual, state, out, at_end, each, pieces)
    return kernel_of(function, state, out, at_end, each, pieces)


def kernel_of(
    function: Callable[..., Any], state: Any = None, out: Any = None, at_end: bool = False,
    each: bool = False, pieces: bool = False,
) -> Kernel:  # fmt: skip
    """A kernel from any plain function."""
    inner = getattr(function, "py_func", function)  # an njit function is accepted too
    if not isinstance(inner, FunctionType):
        raise KernelError(f"a kernel is a Python function, not {function!r}")
    return Kernel(inner, state, out, at_end, each, pieces)
