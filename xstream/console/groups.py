"""Options of a command in groups: dataclasses whose fields are options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option for each field of its parameters that are dataclasses.

    Several commands can share a group, and a command passes a group on as one value:

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int
    ...     height: int = 1
    >>> @grouped
    ... def area(size: Size, unit: str = "m") -> None:
    ...     print(size.width * size.height, unit)
    >>> area(width=3, height=2)
    6 m
    >>> list(inspect.signature(area).parameters)
    ['width', 'height', 'unit']
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            kept = parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name])
            parameters.append(kept)
            continue
        of_fields = get_type_hints(groups[name], include_extras=True)
        parameters += [_parameter(each, of_fields[each.name]) for each in fields(groups[name])]
    signature = inspect.Signature(parameters)

    @wraps(command)
    def flat(**options: Any) -> None:
        bound = signature.bind(**options)
        bound.apply_defaults()
        given = bound.arguments
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    flat.__signature__ = signature  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _parameter(field: Field[Any], annotation: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
