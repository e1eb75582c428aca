"""Two commits, built beside each other and measured in turns."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from xstream.bench.history import BENCHMARKS, ROOT, Record, instructions, measure
from xstream.bench.report import machine
from xstream.errors import InputError

__all__ = ["commit_of", "measure_commits"]


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)


def commit_of(name: str) -> str:
    """The full name of a commit of the source tree."""
    try:
        found = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except OSError:
        raise InputError(f"{name} is not a file, and git is not installed") from None
    if found.returncode or not found.stdout.strip():
        raise InputError(
            f"{name} is neither a record of `xstream bench record` nor a commit of {ROOT}"
        )
    return found.stdout.decode().strip()


@contextmanager
def _built(commits: Sequence[str], say: Callable[[str], None]) -> Iterator[list[Path]]:
    """The source trees of the commits, each with its own native module."""
    with tempfile.TemporaryDirectory(prefix="xstream-compare-") as folder:
        trees = []
        for number, commit in enumerate(commits):
            say(f"building {commit[:10]}")
            tree = Path(folder) / str(number)
            tree.mkdir()
            archive = _git("archive", commit)
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as file:
                file.extractall(tree, filter="data")
            made = subprocess.run(
                [sys.executable, "hatch_build.py"],
                cwd=tree, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if made.returncode:
                raise InputError(f"{commit[:10]} does not build: {made.stderr.strip()[-300:]}")
            trees.append(tree)
        yield trees


def measure_commits(
    first: str, second: str, rounds: int, names: Sequence[str], say: Callable[[str], None]
) -> tuple[Record, Record]:
    """Build and measure both; the order changes from round to round, as in ABBA."""
    chosen = list(names) or list(BENCHMARKS)
    rates: list[dict[str, list[float]]] = [{name: [] for name in chosen} for _ in range(2)]
    with _built((first, second), say) as trees:
        caches = [tree.with_name(f"{tree.name}.kernels") for tree in trees]
        for cache in caches:
            cache.mkdir(mode=0o700)
        for name in chosen:
            for number in range(rounds + 1):  # the first one compiles, and does not count
                say(f"{name}: round {number} of {rounds}")
                for which in (0, 1) if number % 2 else (1, 0):
                    rate = measure(name, trees[which], caches[which])
                    if number:
                        rates[which][name].append(rate)
        say("counting instructions")
        counts = [instructions(tree) for tree in trees]
    known = machine()
    found: list[Record] = [
        {"machine": {**known, "commit": commit[:10]}, "loads": [], "rates": each,
         "instructions": count}
        for commit, each, count in zip((first, second), rates, counts, strict=True)
    ]  # fmt: skip
    return found[0], found[1]
