"""Parsers under arbitrary bytes: what is read, or one InputError; nothing else, and not for ever.

    python -m tests.fuzz.parsers --seconds 60            # every format, new inputs each time
    python -m tests.fuzz.parsers --only csv --runs 1000000
    python -m tests.fuzz.parsers --coverage --only csv   # guided by coverage (atheris)

`make fuzz` runs all formats for a minute or so. Inputs are made from small valid files: bytes are
flipped, cut out, doubled, replaced by numbers that are seldom right, and spliced from others. An
input that breaks a parser is written to `fuzz-FORMAT.bin`.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xstream as xs
from xstream.io.quarantine import Quarantine

#: An input takes no longer than this, and all inputs together no more memory than that.
LONGEST_S = 10.0
MOST_BYTES = 2 << 30
NUMBERS = [b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\x80", b"-1", b"1e999"]
SAMPLES = np.arange(40, dtype=np.float32)


def _written(target: Any, path: Path) -> bytes:
    q = xs.Query()
    q.source(xs.io.array(SAMPLES, rate_hz=8.0)).write(target)
    q.run()
    return path.read_bytes()


def seeds(form: str, folder: Path) -> list[bytes]:
    """Small valid files of a format."""
    path = folder / f"seed.{form}"
    if form == "sigmf":
        _written(xs.io.sigmf(folder / "seed"), folder / "seed.sigmf-data")
        return [(folder / "seed.sigmf-meta").read_bytes()]
    if form == "csv":
        table = b'a,"b,c"\n1,2\n-3.5e2,nan\r\n"4",\n'
        return [_written(xs.io.csv(path), path), table, b"\xef\xbb\xbfx\n1\n"]
    if form == "npy":
        np.save(folder / "two.npy", np.ones((4, 2), ">i2"))
        return [_written(xs.io.npy(path), path), (folder / "two.npy").read_bytes()]
    return [_written(MAKERS[form](path), path)]


MAKERS: dict[str, Callable[..., Any]] = {
    "arrow": xs.io.arrow, "arrows": xs.io.arrow, "csv": xs.io.csv, "csv.gz": xs.io.csv,
    "csv.xz": xs.io.csv, "csv.zst": xs.io.csv, "npy": xs.io.npy, "parquet": xs.io.parquet,
    "raw.gz": xs.io.raw, "sigmf": xs.io.sigmf, "wav": xs.io.wav,
}  # fmt: skip


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """A changed copy of an input."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) + 1)
        length = min(rng.choice((1, 2, 4, 8, 64)), len(found) - at)
        match rng.randrange(6):
            case 0 if at < len(found):
                found[at] ^= 1 << rng.randrange(8)
            case 1:
                del found[at : at + length]
            case 2:
                found[at:at] = found[at : at + length]
            case 3:
                found[at : at + length] = rng.choice(NUMBERS)
            case 4:
                other = rng.choice(others)
                start = rng.randrange(len(other))
                found[at : at + length] = other[start : start + rng.randrange(64)]
            case _:
                del found[at : None if rng.random() < 0.2 else at + 1]
    return bytes(found)


def parse(form: str, data: bytes, folder: Path) -> str:
    """Read an input to its end: `read`, or `refused` for an InputError or a SchemaError."""
    path = folder / f"input.{form}"
    quarantine = None
    if form == "sigmf":
        path = folder / "input.sigmf-meta"
        (folder / "input.sigmf-data").write_bytes(SAMPLES.tobytes())
    path.write_bytes(data)
    source = MAKERS[form](path, layout="rows" if len(data) % 2 and form != "sigmf" else "fields")
    if len(data) % 3 == 0:
        quarantine = Quarantine(folder / "aside.jsonl", 20)
    try:
        source.outputs(())
        for count, block in enumerate(source.blocks(0, quarantine)):
            if len({len(column) for column in block}) != 1 or count > 100_000:
                raise AssertionError("columns of different lengths, or blocks without end")
            for column in block:
                if column.size:
                    column[-1].tobytes()  # the memory is there
    except (xs.InputError, xs.SchemaError, xs.TimebaseError):
        return "refused"
    finally:
        if quarantine is not None:
            quarantine.close()
    return "read"


def inputs(form: str, folder: Path, seed: int) -> Iterator[bytes]:
    """Inputs without end; those that were read become seeds themselves."""
    rng = random.Random(seed)
    pool = seeds(form, folder)
    while True:
        data = mutated(rng.choice(pool), pool, rng)
        if parse(form, data, folder) == "read" and len(pool) < 200 and len(data) < 4096:
            pool.append(data)
        yield data


def fuzz(form: str, seconds: float, runs: int, seed: int) -> dict[str, Any]:
    """Try inputs for so long, or so many; an input that breaks the parser is kept."""
    begin = time.perf_counter()
    done, slowest_s = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="xstream-fuzz-") as scratch:
        folder = Path(scratch)
        trying = inputs(form, folder, seed)
        while done < runs and time.perf_counter() - begin < seconds:
            started = time.perf_counter()
            try:
                next(trying)
            except BaseException:
                kept = Path(f"fuzz-{form}.bin")
                kept.write_bytes(next(folder.glob("input.*[!a]")).read_bytes())
                print(f"{form}: the input in {kept} breaks the parser", file=sys.stderr)
                raise
            slowest_s = max(slowest_s, time.perf_counter() - started)
            if slowest_s > LONGEST_S:
                raise AssertionError(f"{form}: an input took {slowest_s:.1f} s")
            done += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if memory > MOST_BYTES:
        raise AssertionError(f"{form}: {memory:,} bytes of memory")
    return {"format": form, "inputs": done, "slowest_s": round(slowest_s, 3), "peak_bytes": memory}


def fuzz_by_coverage(form: str, runs: int) -> None:
    """The same parser under atheris, which looks for inputs that reach new code; never returns."""
    import atheris

    folder = Path(tempfile.mkdtemp(prefix="xstream-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds(form, folder)):
        (corpus / str(number)).write_bytes(seed)

    def one(data: bytes) -> None:
        parse(form, data, folder)

    atheris.instrument_all()
    limits = ["-max_len=4096", f"-runs={runs}", "-rss_limit_mb=2048", "-timeout=10"]
    atheris.Setup([sys.argv[0], str(corpus), *limits], one)
    atheris.Fuzz()


def main() -> None:
    """Fuzz formats in turn and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=sorted(MAKERS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for all formats together")
    parser.add_argument("--runs", type=int, default=10**9, help="inputs for each format at most")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--coverage", action="store_true", help="guided by coverage (atheris)")
    asked = parser.parse_args()
    forms = asked.only or sorted(MAKERS)
    if asked.coverage:
        fuzz_by_coverage(forms[0], asked.runs)
    seed = asked.seed if asked.seed is not None else random.randrange(2**32)
    for form in forms:
        told = fuzz(form, asked.seconds / len(forms), asked.runs, seed)
        print(json.dumps({**told, "seed": seed}), flush=True)


if __name__ == "__main__":
    main()
