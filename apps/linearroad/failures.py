"""Reduces errors of Spark to one sentence with the root cause."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linearroad.scratch import fullest, written_to
from xstream.errors import XStreamError

__all__ = ["full_disk", "is_no_space", "one_sentence", "reason", "root_cause"]

NO_SPACE = "no space left on device"
SHORT_WRITE = re.compile(r"\d+ requested and \d+ written")
# `ValueError: no`, `java.io.IOException: no`; not the frames of a stack.
PROBLEM = re.compile(r"((?:\w+[.$])*\w*(?:Error|Exception|Exit|Interrupt))\b(?:: (.*))?$")


def reason(error: BaseException) -> str:
    """The root cause of an error that Spark raised; for a full disk, with the folder."""
    told = root_cause(_text(error))
    if NO_SPACE in told.lower():
        return full_disk()
    return told


def _text(error: BaseException) -> str:
    """The whole text of an error; pyspark hides the stack of some Java errors."""
    parts = [str(error) or type(error).__name__]
    stack = getattr(error, "_stackTrace", None)
    return "\n".join([*parts, stack] if isinstance(stack, str) else parts)


def root_cause(text: str) -> str:
    """The innermost cause in a stack of Python or Java.

    >>> root_cause("failed\\nCaused by: a.Outer: b\\n\\tat a.b(C.java)\\nCaused by: c.Error: d")
    'Error: d'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    full = next((line for line in lines if NO_SPACE in line.lower()), None)
    if full is not None:
        return full
    python = _of_python(text)
    if python is not None:
        return python
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    found = [match for line in causes or lines if (match := PROBLEM.match(line.lstrip(": ")))]
    if found:
        kind, what = found[-1].groups()
        return ": ".join(part for part in (re.split(r"[.$]", kind)[-1], what) if part)
    return causes[-1] if causes else (lines[0] if lines else "no reason was given")


def _of_python(text: str) -> str | None:
    """The last line of the last Python traceback; Java's stack may follow it."""
    start = text.rfind("Traceback (most recent call last)")
    if start < 0:
        return None
    for line in text[start:].splitlines()[1:]:
        if line and not line[0].isspace():
            return line.strip()
    return None


def is_no_space(error: OSError) -> bool:
    """Whether a disk is full. pyarrow says so in its message; numpy reports a short write."""
    return (
        error.errno == errno.ENOSPC
        or NO_SPACE in str(error).lower()
        or SHORT_WRITE.search(str(error)) is not None
    )


def full_disk() -> str:
    """The error message for a full disk, with the folder."""
    return f"{NO_SPACE}: the disk of {fullest()} is full"


@contextmanager
def one_sentence(output: Path) -> Iterator[None]:
    """Turn errors of the system, such as a full disk, into one sentence."""
    with written_to(output):
        try:
            yield
        except OSError as error:
            if is_no_space(error):
                raise XStreamError(full_disk()) from error
            place = error.filename or output
            raise XStreamError(f"{place}: {error.strerror or error}") from error
