"""Debug mode: kernels check every index and every division, and the error names them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.extending import register_jitable

import xstream as xs

ROOT = Path(__file__).resolve().parents[2]


@njit
def item(array, index):
    return array[index]


@register_jitable
def deeper(array, index):
    return item(array, index) + 1


@xs.kernel
def reads_window(window, at):
    return window[at]


@xs.kernel
def reads_in_helper(window, at):
    return deeper(window, at)


@xs.kernel
def reads_argument(window, table, at):
    return table[at] + window[0]


@xs.kernel(state={"seen": np.zeros(4)})
def writes_state(window, at, state):
    state.seen[at] = window[0]
    return state.seen[0]


@xs.kernel(state=np.zeros(4))
def writes_grown_state(window, at, state):
    grown = xs.grow(state, 6)
    grown[at] = window[0]
    return grown[0]


@xs.kernel(out=xs.Out("float64"))
def fills_out(window, at, out):
    out[:] = 0.0
    out[at] = window[0]


@xs.kernel(out=float)
def emits(window, at, out):
    out.emit(window[at])


@xs.kernel
def reads_memory(window, address, at):
    return xs.array_at(address, 3, np.int64)[at] + window[0]


@xs.kernel
def divides(window, by):
    return window[0] / by


@xs.kernel
def divides_whole(window, by):
    return 7 // by


@xs.kernel
def remainder(window, by):
    return 7 % by


def run(declare: Any, debug: bool | None = True) -> Any:
    q = xs.Query()
    out = declare(q.source(xs.io.array(np.arange(8.0), window=4))).collect()
    return q.run(debug=debug)[out]


def failure(declare: Any) -> str:
    with pytest.raises(xs.OperatorError) as caught:
        run(declare)
    return str(caught.value)


@pytest.mark.parametrize("index", [4, -5, 2**62])
def test_an_index_outside_a_window_names_operator_tuple_and_index(index: int) -> None:
    message = failure(lambda s: s.map(reads_window, index, name="careless"))
    assert message.startswith("careless, port 'in', tuple (<SigSeg 4 samples [0, 4) float64")
    assert message.endswith(f": IndexError: index {index} is out of bounds for axis 0 with size 4")
    assert run(lambda s: s.map(reads_window, -4)) == [0.0, 4.0]


def test_helpers_are_checked_whether_they_were_compiled_before_or_not() -> None:
    first = run(lambda s: s.map(reads_in_helper, 3), debug=False)
    assert first == [4.0, 8.0] == run(lambda s: s.map(reads_in_helper, 3))
    assert "index 9 is out of bounds for axis 0 with size 4" in failure(
        lambda s: s.map(reads_in_helper, 9)
    )
    assert item(np.arange(3.0), 2) == 2.0


KEPT = np.arange(3)


@pytest.mark.parametrize(
    ("declare", "index", "size"),
    [
        (lambda s, at: s.map(reads_argument, np.arange(5.0), at), 5, 5),
        (lambda s, at: s.map(writes_state, at), 4, 4),
        (lambda s, at: s.map(writes_grown_state, at), 6, 6),
        (lambda s, at: s.map(fills_out, at), 4, 4),
        (lambda s, at: s.iterate(emits, at), 4, 4),
        (lambda s, at: s.map(reads_memory, KEPT.ctypes.data, at), 3, 3),
    ],
    ids=["argument", "state", "grown state", "out", "emit", "array_at"],
)
def test_every_array_of_a_kernel_is_checked(declare: Any, index: int, size: int) -> None:
    wrong = f"IndexError: index {index} is out of bounds for axis 0 with size {size}"
    assert wrong in failure(lambda s: declare(s, index))
    checked, unchecked = (run(lambda s: declare(s, 0), debug) for debug in (True, False))
    assert np.array_equal(np.asarray(checked), np.asarray(unchecked))


@pytest.mark.parametrize("kernel", [divides, divides_whole, remainder])
@pytest.mark.parametrize("by", [0, 0.0])
def test_a_division_by_zero_is_an_error_in_debug_mode_only(kernel: xs.Kernel, by: float) -> None:
    message = failure(lambda s: s.map(kernel, by))
    assert "tuple (<SigSeg 4 samples [0, 4)" in message
    assert ": ZeroDivisionError: " in message
    assert "zero" in message
    run(lambda s: s.map(kernel, by), debug=False)
    assert run(lambda s: s.map(kernel, 2 + by)) == run(lambda s: s.map(kernel, 2 + by), False)


SCRIPT = """
import sys
import numpy as np, xstream as xs

@xs.kernel
def outside(window, at):
    return window[at]

for debug in (None, False, True):
    q = xs.Query()
    q.source(xs.io.array(np.arange(8.0), window=4)).map(outside, 5).count()
    try:
        q.run(debug=debug)
        print("ran")
    except xs.OperatorError as error:
        print(str(error).split(": ", 1)[1])
"""


def script(folder: Path, debug: str) -> subprocess.CompletedProcess[str]:
    path = folder / "outside.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "XSTREAM_CACHE_DIR": str(folder / "cache"), "XSTREAM_DEBUG": debug}
    return subprocess.run(
        [sys.executable, str(path)], env=environment, cwd=ROOT, capture_output=True, text=True
    )


def test_the_environment_asks_for_it_and_the_cache_keeps_both_apart(tmp_path: Path) -> None:
    """The second process finds both in the cache, the third what the first two have left."""
    found = "IndexError: index 5 is out of bounds for axis 0 with size 4"
    assert script(tmp_path, "1").stdout.splitlines() == [found, "ran", found]
    kept = sorted((tmp_path / "cache").rglob("k*.nbi"))  # the kernel with checks, and a region
    assert len(kept) == 2
    assert script(tmp_path, "1").stdout.splitlines() == [found, "ran", found]
    assert script(tmp_path, "0").stdout.splitlines() == ["ran", "ran", found]
    assert sorted((tmp_path / "cache").rglob("k*.nbi")) == kept


def test_the_environment_variable_is_0_or_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XSTREAM_DEBUG", "yes")
    with pytest.raises(xs.InputError, match=r"XSTREAM_DEBUG is 1 \(on\) or 0 \(off\), not 'yes'"):
        run(lambda s: s.map(reads_window, 0), debug=None)
