"""Kernels that do not compile say why; kernels that raise stop the run in their own words."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import xstream as xs
from tests.engine import kernels

ROOT = Path(__file__).resolve().parents[2]


def segments(q: xs.Query, samples: int = 40) -> Any:
    return q.source(xs.io.array(np.arange(samples, dtype=np.float32), window=4))


def refused(declare: Any) -> str:
    with pytest.raises(xs.KernelError) as caught:
        declare(segments(xs.Query()))
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400, message
    return message


@xs.kernel
def writes(window):
    window[0] = 1
    return True


@xs.kernel
def returns_nothing(window):
    pass


@xs.kernel
def returns_two_dimensions(window):
    return window.reshape(2, -1)


@xs.kernel
def returns_text(window):
    return "loud"


@xs.kernel
def returns_no_values(window):
    return ()


@xs.kernel
def uses_unknown(window):
    return unknown_name(window)  # noqa: F821


@xs.kernel(out=(int, float))
def emits_too_few(window, out):
    out.emit(1)


@xs.kernel(out=(int, float))
def returns_three(window):
    return 1, 2.0, 3.0


def test_what_does_not_compile_is_named() -> None:
    assert "kernel 'writes' does not compile" in (text := refused(lambda s: s.filter(writes)))
    assert "readonly array" in text
    assert "kernel 'uses_unknown'" in (text := refused(lambda s: s.filter(uses_unknown)))
    assert "unknown_name" in text
    assert "kernel 'emits_too_few'" in refused(lambda s: s.iterate(emits_too_few))


def test_what_a_tuple_cannot_carry_is_named() -> None:
    assert "returns none: a number, an array" in refused(lambda s: s.map(returns_nothing))
    assert "array(float32, 2d, " in refused(lambda s: s.map(returns_two_dimensions))
    assert "returns Literal[str](loud)" in refused(lambda s: s.map(returns_text))
    assert "returns an empty tuple" in refused(lambda s: s.map(returns_no_values))
    assert "returns 3 values and out= declares 2" in refused(lambda s: s.map(returns_three))


def test_parameters_must_fit_fields_and_arguments() -> None:
    text = refused(lambda s: s.filter(kernels.louder))
    assert text == (
        "kernel 'louder' takes 2 values (window, alpha) and gets 1: 1 fields (value) and 0 "
        "arguments"
    )
    assert "gets 3: 1 fields (value) and 2 arguments" in refused(
        lambda s: s.filter(kernels.louder, 1, 2)
    )


@xs.kernel
def of_two(alpha, y):  # type: ignore[no-untyped-def]
    return alpha * y


def test_names_that_do_not_work_out_are_in_the_message() -> None:
    query = xs.Query()
    fields = {"x": float, "y": float, "z": float}
    three = query.source(xs.io.iterable([], out=fields))
    with pytest.raises(xs.KernelError, match="and 0 arguments; the names y are found in both"):
        three.map(of_two)


def test_ways_that_do_not_fit_are_named() -> None:
    assert "filters, so it returns a flag, not array" in refused(
        lambda s: s.filter(kernels.doubled)
    )
    assert "needs out= to say what it emits" in refused(lambda s: s.iterate(kernels.keep_all))
    assert "a filter returns a flag" in refused(lambda s: s.filter(kernels.remember_and_tell))
    assert "declare out= with @xs.kernel" in refused(lambda s: s.map(kernels.doubled, out=float))
    assert "a kernel or a callable, not 5" in refused(lambda s: s.map(5))


def test_declarations_that_make_no_sense() -> None:
    for options, what in [
        ({"state": np.zeros((2, 2))}, "one-dimensional"),
        ({"state": {"class": 1}}, "'class' is not a name"),
        ({"state": {"_x": 1}}, "underscore"),
        ({"state": np.zeros(1)}, "no parameter 'state'"),
        ({"state": object()}, "state is numbers"),
    ]:
        with pytest.raises(xs.KernelError, match=what):
            xs.kernel(**options)(lambda window: window)
    with pytest.raises(xs.KernelError, match="has no state= for its parameter"):
        xs.kernel(lambda window, state: window)
    with pytest.raises(xs.KernelError, match="must be positional"):
        xs.kernel(lambda *windows: windows)
    with pytest.raises(xs.KernelError, match="a Python function"):
        xs.kernel(len)  # type: ignore[arg-type]


@njit
def checked_root(x):
    if x > 20:
        raise ArithmeticError("too large to be true", x)
    return np.sqrt(x)


@xs.kernel(state={"n": np.zeros(1, np.int64), "large": np.zeros(10_000)})
def fails_in_helper(window, state):
    """Fails after its state has changed, which is too large to keep a copy of for each call."""
    state.n[0] += 1
    state.large[state.n[0]] = 1
    if state.n[0] != state.large.sum():
        raise ValueError("not this one")
    state.n[0] += 1000
    state.large[:] = 0
    total = checked_root(window[0])
    state.n[0] -= 1000
    state.large[1 : state.n[0] + 1] = 1
    return total


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_an_error_in_a_kernel_stops_the_run_in_its_own_words(scheduler: str, memory: str) -> None:
    q = xs.Query()
    stream = segments(q).map(kernels.doubled).map(kernels.copied)
    stream.filter(kernels.keep_all).filter(kernels.fails_at_five, name="careful").collect()
    manager = xs.memory_manager(memory)
    with pytest.raises(xs.OperatorError) as caught:
        q.run(scheduler, manager)
    message = str(caught.value)
    assert message.startswith("careful, port 'in', tuple (<SigSeg 4 samples [16, 20) float32")
    assert message.endswith("ValueError: the fifth window is one too many")
    assert isinstance(caught.value.__cause__, ValueError)
    del caught
    gc.collect()
    assert manager.stats().live_blocks == 0
    assert manager.stats().live_segments == 0


def test_errors_of_helpers_and_of_large_states_are_exact() -> None:
    q = xs.Query()
    segments(q).map(fails_in_helper).count()
    with pytest.raises(xs.OperatorError, match="too large to be true") as caught:
        q.run()
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.args == ("too large to be true", 24.0)
    assert "[24, 28)" in str(caught.value)


def test_an_error_far_below_a_kernel_that_emits() -> None:
    """The kernels above are in the middle of a call when the one below fails."""
    q = xs.Query()
    stream = segments(q).iterate(kernels.remember_and_tell)
    stream.map(lambda n, kept: (n, kept)).filter(lambda n, kept: 1 / (n - 6) < 9).collect()
    manager = xs.memory_manager("refcount-realloc")
    with pytest.raises(xs.OperatorError, match=r"filter\(<lambda>\).*ZeroDivisionError") as caught:
        q.run(memory=manager)
    del caught
    gc.collect()
    assert manager.stats().live_blocks == 0


@xs.kernel(state={"n": np.zeros(1)}, out=float, at_end=True)
def fails_at_the_end(window, state, out):
    if out.ended:
        raise RuntimeError("nothing to say")


def test_an_error_at_the_end_names_the_operator() -> None:
    q = xs.Query()
    segments(q).iterate(fails_at_the_end).count()
    with pytest.raises(
        xs.OperatorError, match=r"^iterate\(fails_at_the_end\): RuntimeError: nothing"
    ):
        q.run()


BOUNDS = """
import numpy as np, xstream as xs

@xs.kernel(state=np.zeros(2), out=float)
def outside(window, at, state, out):
    if window[0] > 2:
        out.emit(window[at])

@xs.kernel(state=np.zeros(2))
def outside_of_state(window, state):
    state[int(window[0])] = 1
    return True

for declare in (lambda s: s.iterate(outside, 7), lambda s: s.filter(outside_of_state)):
    q = xs.Query()
    declare(q.source(xs.io.array(np.arange(16.0), window=4))).count()
    try:
        q.run()
    except xs.OperatorError as error:
        print(error)
"""


def test_bounds_can_be_checked(tmp_path: Path) -> None:
    """NUMBA_BOUNDSCHECK=1: an index out of range is an error of the operator, and no crash."""
    script = tmp_path / "bounds.py"
    script.write_text(BOUNDS)
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "XSTREAM_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 2, done.stdout
    assert all("[4, 8)" in line and "IndexError" in line for line in lines), lines
