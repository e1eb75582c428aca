"""Compiled kernels on disk: found again by a second process, and never stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.engine import kernels
from xstream.kernels import _cache
from xstream.kernels._adapter import compile_kernel
from xstream.kernels._fingerprint import fingerprint

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys, time
begin = time.perf_counter()
import numpy as np, xstream as xs
from numba import njit
import shared
from xstream.kernels import apply

SCALE = 2.0
TABLE = np.array([1.0, 2.0])
PAIR = (1, 2)

@njit
def helper(x):
    return x + 1.0

@xs.kernel(state=np.zeros(1), out=float)
def mine(window, state, out):
    state[0] += 1
    if state[0] > 100:
        raise ValueError("too many", state[0])
    out.emit(helper(window[0]) * SCALE + TABLE[1] + PAIR[0] + shared.far(window[1]) + shared.LEVEL)

q = xs.Query()
out = q.source(xs.io.array(np.arange(8.0), window=4)).iterate(mine).collect()
found = q.run()[out]
compiled = apply._compiled(mine, "iterate", q.nodes[0].outputs[0], (), False)
print(compiled.from_cache, found[0], time.perf_counter() - begin)
"""
SHARED = """
from numba import njit
LEVEL = 10.0

def deeper(x):
    return x * 3

@njit
def far(x):
    return njit_deeper(x)

njit_deeper = njit(deeper)
"""


class Script:
    """A user's script and a module beside it, with a cache of their own."""

    def __init__(self, home: Path) -> None:
        self.home, self.cache = home, home / "cache"
        self.write(SCRIPT, SHARED)

    def write(self, script: str, shared: str) -> None:
        (self.home / "script.py").write_text(script)
        (self.home / "shared.py").write_text(shared)
        shutil.rmtree(self.home / "__pycache__", ignore_errors=True)  # edits within one second

    def run(self, **environment: str) -> tuple[bool, float, float]:
        """Whether the kernel came from the cache, its first result, and seconds to the results."""
        out = self.raw([sys.executable, "script.py"], **environment)
        hit, first, seconds = out.split()
        return hit == "True", float(first), float(seconds)

    def raw(self, command: list[str], stdin: str = "", **environment: str) -> str:
        done = subprocess.run(
            command, input=stdin, cwd=self.home, capture_output=True, text=True, timeout=120,
            env={**os.environ, "XSTREAM_CACHE_DIR": str(self.cache), **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "rror" not in done.stderr, done.stderr
        return done.stdout


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_the_second_process_hits_and_every_edit_compiles_again(
    script: Script, record_property: Any
) -> None:
    assert script.run()[:2] == (False, 2.0 + 2 + 1 + 3 + 10)
    hit, first, seconds = script.run()
    assert (hit, first) == (True, 18.0)
    record_property("seconds_to_results_from_cache", seconds)
    print(f"second process: {seconds:.2f} s from import to results")
    script.write(SCRIPT.replace("return x + 1.0", "return x + 2.0"), SHARED)
    assert script.run()[:2] == (False, 20.0)
    script.write(SCRIPT.replace("SCALE = 2.0", "SCALE = 3.0"), SHARED)
    assert script.run()[:2] == (False, 19.0)
    script.write(SCRIPT, SHARED.replace("return x * 3", "return x * 4"))
    assert script.run()[:2] == (False, 19.0)
    script.write("# a comment moves every line\n" + SCRIPT, SHARED)
    assert script.run()[:2] == (True, 18.0)


def test_errors_come_out_of_cached_code_too(script: Script) -> None:
    script.write(SCRIPT.replace("> 100", "> 1").replace("q.run()[out]", "failed(q)") .replace(
        "q = xs.Query()", '''
def failed(q):
    try:
        q.run()
    except xs.OperatorError as error:
        assert error.__cause__.args == ("too many", 2.0), error
        return [7.0]

q = xs.Query()'''), SHARED)  # fmt: skip
    assert script.run()[:2] == (False, 7.0)
    assert script.run()[:2] == (True, 7.0)


def test_damage_is_noticed_and_repaired(script: Script) -> None:
    script.run()
    for pattern, harm in [
        ("__pycache__/*.nbc", _flipped),
        ("__pycache__/*.nbi", lambda data: b"\xff\xfe junk"),
        ("k*.*", lambda data: b""),
    ]:
        for path in script.cache.glob(pattern):
            path.write_bytes(harm(path.read_bytes()))
        assert script.run()[:2] == (False, 18.0), pattern
    assert script.run()[:2] == (True, 18.0)


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


def test_a_cache_that_cannot_be_written_is_done_without(script: Script) -> None:
    script.cache.write_text("a file where the directory would be")
    assert script.run()[:2] == (False, 18.0)


def test_two_processes_write_at_once(script: Script) -> None:
    environment = {**os.environ, "XSTREAM_CACHE_DIR": str(script.cache)}
    processes = [
        subprocess.Popen(
            [sys.executable, "script.py"], cwd=script.home, env=environment,
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert float(out.split()[1]) == 18.0
    assert script.run()[1] == 18.0


PROMPT = """
import numpy as np, xstream as xs
@xs.kernel
def typed(window): return window.sum() * 2

q = xs.Query(); out = q.source(xs.io.array(np.arange(4.0))).map(typed).collect()
print(q.run()[out])
"""


def test_kernels_typed_at_a_prompt_work(script: Script) -> None:
    assert script.raw([sys.executable, "-c", PROMPT]) == "[12.0]\n"
    executed = f"exec({PROMPT!r}, {{'__name__': 'no_module'}})"
    for _ in range(2):
        assert script.raw([sys.executable, "-c", executed]) == "[12.0]\n"
    done = subprocess.run(
        [sys.executable, "-i", "-q"], input=PROMPT, cwd=script.home, capture_output=True, text=True,
        env={**os.environ, "XSTREAM_CACHE_DIR": str(script.cache)},
    )  # fmt: skip
    assert "[12.0]" in done.stdout, done.stderr


def test_the_cache_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XSTREAM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_cache, "KEEP", 3)
    segment = xs.schema(xs.Segment("f4"))
    for number in range(5):
        namespace: dict[str, Any] = {}
        exec(f"def numbered(window): return len(window) > {number}", namespace)
        compile_kernel(xs.kernel(namespace["numbered"]), "filter", segment, ())
        exec(f"def wrong(window, out): out.emit({number}, nothing)", namespace)
        wrong = xs.kernel(out=int)(namespace["wrong"])
        with pytest.raises(xs.KernelError):  # what fails leaves a file as well
            compile_kernel(wrong, "iterate", segment, ())
        # Between two, so that the order of their use is seen on coarse clocks.
        for path in tmp_path.glob("*.*"):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 10))
    _cache.prune(tmp_path)
    stems = {path.name.split(".")[0] for path in tmp_path.rglob("k*.*")}
    assert len(stems) <= 3


def compiled_doubling() -> tuple[bool, list[float]]:
    """Whether a small kernel came from the cache, and what it says."""
    namespace: dict[str, Any] = {"__name__": __name__}
    exec("def doubled(x): return 2.0 * x", namespace)
    doubled = xs.kernel(namespace["doubled"])
    code = compile_kernel(doubled, "map", xs.schema(float), ())
    q = xs.Query()
    out = q.source(xs.io.iterable([1.0], out=float)).map(doubled).collect()
    return code.from_cache, q.run()[out]


def test_members_of_a_region_have_no_machine_code_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XSTREAM_CACHE_DIR", str(tmp_path))
    namespace: dict[str, Any] = {"__name__": __name__}
    exec("def first(window): return window[0] + 17.0\ndef second(x): return x * 19.0", namespace)
    q = xs.Query()
    src = q.source(xs.io.array(np.arange(4.0), window=2))
    out = src.map(xs.kernel(namespace["first"])).map(xs.kernel(namespace["second"])).collect()
    assert list(tmp_path.rglob("*.nbi")) == []
    assert q.run()[out] == [17.0 * 19, 19.0 * 19]
    (region,) = tmp_path.rglob("*.nbi")
    assert ".region" in region.name
    assert q.run(fuse=False)[out] == [17.0 * 19, 19.0 * 19]
    assert len(list(tmp_path.rglob("*.nbi"))) == 3


@pytest.mark.parametrize("mode", [0o770, 0o1777])
def test_a_cache_that_others_may_write_to_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    monkeypatch.setenv("XSTREAM_CACHE_DIR", str(cache))
    with pytest.warns(RuntimeWarning, match="others may write to it: .*chmod 700") as caught:
        assert compiled_doubling() == (False, [2.0])
    assert len(caught) == 1
    assert list(cache.iterdir()) == []
    assert cache.stat().st_mode & 0o7777 == mode


def test_a_cache_of_another_user_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XSTREAM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert compiled_doubling() == (False, [2.0])
    assert list(tmp_path.iterdir()) == []


def test_a_cache_is_made_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, readable = tmp_path / "a" / "fresh", tmp_path / "readable"
    readable.mkdir()
    readable.chmod(0o755)  # as earlier versions made it: read by others, never written by them
    for cache in (fresh, readable):
        monkeypatch.setenv("XSTREAM_CACHE_DIR", str(cache))
        assert compiled_doubling() == (False, [2.0])
        assert compiled_doubling() == (True, [2.0])
        assert cache.stat().st_mode & 0o777 == 0o700


def test_fingerprints_see_what_code_depends_on_and_nothing_else() -> None:
    def of(source: str, **names: Any) -> str:
        namespace = {"np": np, "__name__": "somewhere", **names}
        exec(source, namespace)
        return fingerprint(namespace["kernel"])

    code = "def kernel(x): return x + VALUE"
    assert of(code, VALUE=1) == of("\n\n" + code, VALUE=1)
    different = [1, 1.0, True, "1", (1,), [1], (1, 2), np.array([1]), np.array([1.0]),
                 {"a": 1}, {"a": 2}, np.dtype("f4"), np.float32, np.arange(5000),
                 -np.arange(5000)]  # fmt: skip
    prints = [of(code, VALUE=value) for value in different]
    assert len(set(prints)) == len(prints)
    assert of(code, VALUE=np.arange(5000)) == of(code, VALUE=np.arange(5000))

    helper = "def helper(x, scale={0}, *, shift={1}): return x\ndef kernel(x): return helper(x)"
    assert len({of(helper.format(a, b)) for a, b in [(1, 1), (2, 1), (1, 2)]}) == 3
    closure = "def make(n):\n def inner(x): return x + n\n return inner\nkernel = make({})"
    assert of(closure.format(1)) != of(closure.format(2))
    handled = "def kernel(x):\n try:\n  {}\n except Exception:\n  return 1\n {}\n return 2"
    assert of(handled.format("x()", "y()")) != of(handled.format("pass", "x();y()"))

    import enum

    def color(red: int) -> Any:
        return enum.IntEnum("Color", {"RED": red})

    named = "def kernel(x): return x == Color.RED"
    assert of(named, Color=color(1)) == of(named, Color=color(1))
    assert of(named, Color=color(1)) != of(named, Color=color(2))


def test_fingerprints_are_the_same_in_every_process() -> None:
    """Sets in another order, objects at other addresses: the same code all the same."""
    script = """
import numpy as np, xstream as xs
from xstream.kernels._fingerprint import fingerprint
class Thing: pass
thing = Thing()
def kernel(x):
    if x in {'a', 'b', 'c', 'd'}: return np.sqrt(thing)
    return xs.grow(x, 3)
print(fingerprint(kernel))
if __import__('sys').argv[1:]: xs.grow; print(fingerprint(kernel))
"""
    prints = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script, "more"], cwd=ROOT, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
        )  # fmt: skip
        prints |= set(done.stdout.split())
    assert len(prints) == 1


def test_large_global_arrays_work_though_they_cannot_be_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XSTREAM_CACHE_DIR", str(tmp_path))
    namespace: dict[str, Any] = {"TABLE": np.arange(500_000.0), "__name__": __name__}
    exec("def look(window): return TABLE[int(window[0])]", namespace)
    q = xs.Query()
    src = q.source(xs.io.array(np.array([7.0, 499_999.0]), window=1))
    out = src.map(xs.kernel(namespace["look"])).collect()
    assert q.run()[out] == [7.0, 499_999.0]


def test_numba_must_not_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(xs.KernelError, match="NUMBA_DISABLE_JIT"):
        compile_kernel(kernels.keep_all, "filter", xs.schema(xs.Segment("f8")), ())


FRESH = """
import numpy as np, xstream as xs

@xs.kernel({declared})
def mine({parameters}):
    {body}

q = xs.Query()
out = q.source(xs.io.array(np.arange(8.0), window=2)).{how}(mine).count()
print(q.run()[out])
"""
GROWS = "kept = xs.grow(state.kept, 5); kept[4] += window[0]; return kept[4]"


@pytest.mark.parametrize(
    ("how", "declared", "parameters", "body"),
    [
        ("map", "state={'kept': np.zeros(2)}", "window, state", GROWS),
        ("filter", "", "window", "xs.prefetch(window, 1); return window[0] > -1.0"),
        ("iterate", "out=float", "window, out", "xs.prefetch(window, 1); out.emit(window[0])"),
    ],
)
def test_a_fresh_process_knows_grow_and_prefetch(
    script: Script, how: str, declared: str, parameters: str, body: str
) -> None:
    """Nothing else has been compiled that could have told numba of them."""
    text = FRESH.format(how=how, declared=declared, parameters=parameters, body=body)
    script.write(text, SHARED)
    assert script.raw([sys.executable, "script.py"]) == "4\n"
