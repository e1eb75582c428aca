"""The C stress (four threads on the same segments) under the compiler's sanitizers."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "xstream" / "sigseg"
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
THREAD = ["-fsanitize=thread"]
PLAIN_COUNTS = ["-DXS_PLAIN_COUNTS"]

pytestmark = [pytest.mark.sanitizer, pytest.mark.timeout(900)]


def compiled(folder: Path, source: Path, flags: list[str]) -> Path:
    """`source` with the core, or a skip where this compiler lacks the sanitizer."""
    program = folder / "-".join([source.stem, *(flag.strip("-") for flag in flags)])
    compiler = shlex.split(os.environ.get("CC", "cc"))
    core = [] if source.stem == "hello" else sorted(map(str, CORE.glob("*.c")))
    subprocess.run(
        [*compiler, "-std=gnu11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror",
         f"-I{CORE}", *flags, str(source), *core, "-o", str(program)],
        check=True,
    )  # fmt: skip
    return program


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run with fixed addresses: ThreadSanitizer cannot place its shadow under a wide layout."""
    fixed = [setarch, platform.machine(), "-R"] if (setarch := shutil.which("setarch")) else []
    if fixed and subprocess.run([*fixed, "true"], check=False, capture_output=True).returncode:
        fixed = []  # containers may forbid it
    return subprocess.run(
        [*fixed, str(program), *arguments],
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "TSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stress")


def sanitizer_works(folder: Path, flags: list[str]) -> bool:
    hello = folder / "hello.c"
    hello.write_text("int main(void) { return 0; }\n")
    try:
        return run(compiled(folder, hello, flags)).returncode == 0
    except subprocess.CalledProcessError:
        return False


def test_four_threads_leave_right_samples_and_nothing_alive(folder: Path) -> None:
    result = run(compiled(folder, HERE / "stress.c", []), "20000")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_stress_fails_when_counts_are_not_atomic(folder: Path) -> None:
    """Without a sanitizer: crashes, wrong samples or something alive at the end."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("threads must run at the same time for a lost count")
    program = compiled(folder, HERE / "stress.c", PLAIN_COUNTS)
    assert any(run(program, "50000").returncode != 0 for _ in range(5))


def test_a_list_that_would_be_larger_than_any_memory_is_refused(folder: Path) -> None:
    result = run(compiled(folder, HERE / "limits.c", []))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_thread_sanitizer_finds_nothing(folder: Path) -> None:
    if not sanitizer_works(folder, THREAD):
        pytest.skip("ThreadSanitizer does not run here; the stress above stands in for it")
    result = run(compiled(folder, HERE / "stress.c", THREAD), "6000")
    assert result.returncode == 0, result.stdout + result.stderr


def test_thread_sanitizer_finds_counts_that_are_not_atomic(folder: Path) -> None:
    if not sanitizer_works(folder, THREAD):
        pytest.skip("ThreadSanitizer does not run here; the stress above stands in for it")
    result = run(compiled(folder, HERE / "stress.c", [*THREAD, *PLAIN_COUNTS]), "500")
    assert result.returncode != 0
    assert "ThreadSanitizer: data race" in result.stderr
    assert "count_" in result.stderr


def test_address_and_undefined_behaviour_sanitizers_find_nothing_and_no_leak(folder: Path) -> None:
    if not sanitizer_works(folder, ADDRESS):
        pytest.skip("AddressSanitizer does not run here")
    result = run(compiled(folder, HERE / "stress.c", ADDRESS), "6000")
    assert result.returncode == 0, result.stdout + result.stderr
