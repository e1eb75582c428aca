"""Recognises kernels that are one expression over samples, such as `return window * gain`.

Such a kernel treats every sample of a window alike. The adapter can therefore run it as a loop that
writes each result to its destination: into the output's block, or over an input that is not shared.
Numba compiles the same loop over single samples for an array expression, so the results are the
same bits.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any

import numpy as np

__all__ = ["is_expression"]

_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.LShift, ast.RShift,
)  # fmt: skip
_SIGNS = (ast.UAdd, ast.USub, ast.Invert)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_expression(function: FunctionType) -> bool:
    """Whether a function returns an expression of its parameters that applies sample by sample.

    It consists of parameters, numbers, operators and ufuncs of numpy. A function whose source
    cannot be found, as at a prompt, is taken for something else.

    >>> def scaled(window, gain):
    ...     return np.abs(window) * gain + 1
    >>> def centred(window):
    ...     return window - window.mean()
    >>> is_expression(scaled), is_expression(centred)
    (True, False)
    """
    returned = _returned(function)
    if returned is None:
        return False
    return _goes_by_sample(returned, set(inspect.signature(function).parameters), function)


def _returned(function: FunctionType) -> ast.expr | None:
    """The expression of a function that does nothing but return one."""
    try:
        (defined,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not isinstance(defined, ast.FunctionDef) or defined.name != function.__name__:
        return None
    body = [
        statement
        for statement in defined.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _goes_by_sample(node: ast.expr, parameters: set[str], function: FunctionType) -> bool:
    match node:
        case ast.Name(id=name):
            return name in parameters
        case ast.Constant(value=value):
            return isinstance(value, int | float | complex)
        case ast.UnaryOp(op=op, operand=operand) if isinstance(op, _SIGNS):
            parts = [operand]
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            parts = [left, right]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _COMPARISONS):
            parts = [left, right]
        case ast.Call(func=called, args=given, keywords=[]):
            found = _called(called, function)
            parts = given
            if isinstance(found, np.ufunc):
                if (found.nin, found.nout) != (len(given), 1):
                    return False
            elif not (_is_number_type(found) and isinstance(given[0], ast.Constant)):
                return False
        case _:
            return False
    return all(_goes_by_sample(part, parameters, function) for part in parts)


def _called(node: ast.expr, function: FunctionType) -> Any:
    """Return the called object: a global, or an attribute of numpy."""
    if isinstance(node, ast.Name):
        return function.__globals__.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = function.__globals__.get(node.value.id)
        return getattr(np, node.attr, None) if module is np else None
    return None


def _is_number_type(found: Any) -> bool:
    """Whether it is a type of number, as in `np.float32(0.5)`."""
    return isinstance(found, type) and issubclass(found, np.number)
