"""Parsers under arbitrary bytes: what is read, or one InputError; nothing else, and not for ever.

    python -m tests.fuzz.parsers --seconds 60            # every format, new inputs each time
    python -m tests.fuzz.parsers --only csv --runs 1000000
    python -m tests.fuzz.parsers --coverage --only csv   # guided by coverage; pip install atheris

`make fuzz` runs all formats for a minute or so. Inputs are made from small valid files: bytes are
flipped, cut out, doubled, replaced by numbers that are seldom right, and spliced from others. An
input that breaks a parser is written to `fuzz-FORMAT.bin`.
"""

from __future__ import annotations

import argparse
import inspect
import json
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import xstream as xs
from tests.fuzz.sockets import SOCKETS, socket_seeds

#: An input takes no longer than this, and all inputs together no more memory than that.
LONGEST_S = 10.0
ASLEEP_S = 300.0
MOST_BYTES = 512 << 20
#: The number of inputs that one child process tries.
BATCH = 20_000
#: In memory, where there is such a file system: every input is a file.
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
NUMBERS = [b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\x80", b"-1", b"1e999"]
#: Modules in Python whose code a run that is guided by coverage looks at.
FOLLOWED = ("xstream.io.", "json.", "numpy.lib._format_impl")
SAMPLES = np.arange(40, dtype=np.float32)
#: A bad line of text is found by bisection, which takes long for many lines.
FEW_SAMPLES = SAMPLES[:6]


def _written(target: Any, path: Path) -> bytes:
    q = xs.Query()
    samples = FEW_SAMPLES if path.name.startswith("seed.csv") else SAMPLES
    q.source(xs.io.array(samples, rate_hz=8.0)).write(target)
    q.run()
    return path.read_bytes()


def seeds(form: str, folder: Path) -> list[bytes]:
    """Small valid files of a format, or what a peer may send."""
    if form in SOCKETS:
        return socket_seeds(form)
    path = folder / f"seed.{form}"
    if form == "sigmf":
        _written(xs.io.sigmf(folder / "seed"), folder / "seed.sigmf-data")
        return [(folder / "seed.sigmf-meta").read_bytes()]
    if form == "csv":
        table = b'a,"b,c"\n1,2\n-3.5e2,nan\r\n"4",\n'
        return [_written(xs.io.csv(path), path), table, b"\xef\xbb\xbfx\n1\n"]
    if form in ("arrow", "arrows", "parquet"):
        return [_written(MAKERS[form](path), path), *_compressed_tables(form)]
    if form == "npy":
        np.save(folder / "two.npy", np.ones((4, 2), ">i2"))
        return [_written(xs.io.npy(path), path), (folder / "two.npy").read_bytes()]
    return [_written(MAKERS[form](path), path)]


def _compressed_tables(form: str) -> list[bytes]:
    """Tables with compressed buffers or pages, nulls and a dictionary."""
    table = pa.table({"n": pa.array([1, 2, 3] * 9), "x": pa.array([0.5, None, 0.5] * 9)})
    found = []
    for method in ("zstd", "lz4"):
        sink = pa.BufferOutputStream()
        if form == "parquet":
            pq.write_table(table, sink, compression=method, row_group_size=10)
        else:
            new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
            with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=method)) as to:
                to.write_table(table)
        found.append(sink.getvalue().to_pybytes())
    return found


MAKERS: dict[str, Callable[..., Any]] = {
    "arrow": xs.io.arrow, "arrows": xs.io.arrow, "arrows.gz": xs.io.arrow, "csv": xs.io.csv,
    "csv.gz": xs.io.csv, "csv.xz": xs.io.csv, "csv.zst": xs.io.csv, "flac": xs.io.wav,
    "npy": xs.io.npy, "ogg": xs.io.wav, "parquet": xs.io.parquet, "raw": xs.io.raw,
    "raw.gz": xs.io.raw, "sigmf": xs.io.sigmf, "wav": xs.io.wav,
}  # fmt: skip


FORMS = [*sorted(MAKERS), *sorted(SOCKETS)]


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


def _write(path: Path, data: bytes) -> None:
    """The content of a file; in a third of the time of `Path.write_bytes`."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, data)
    os.close(file)


def parse(form: str, data: bytes, folder: Path) -> str:
    """Read an input to its end: `read`, or `refused` for an InputError or a SchemaError."""
    path = folder / f"input.{form}"
    if form == "sigmf":
        path = folder / "input.sigmf-meta"
        _write(folder / "input.sigmf-data", SAMPLES.tobytes())
    _write(path, data)
    if form in SOCKETS:
        return SOCKETS[form](data)
    options: dict[str, Any] = {"layout": "rows" if len(data) % 2 and form != "sigmf" else "fields"}
    if len(data) % 3 == 0:
        aside = folder / "aside.jsonl"
        options |= {"on_error": "quarantine", "quarantine": aside, "budget": 20}
    try:
        source = MAKERS[form](path, **options)
        source.outputs(())
        for count, block in enumerate(source.checked_blocks(0)):
            if len({len(column) for column in block}) != 1 or count > 100_000:
                raise AssertionError("columns of different lengths, or blocks without end")
            for column in block:
                if column.size:
                    column[-1].tobytes()  # the memory is there
    except (xs.InputError, xs.SchemaError, xs.TimebaseError):
        return "refused"
    return "read"


def inputs(form: str, folder: Path, seed: int) -> Iterator[bytes]:
    """Inputs without end; those that were read become seeds themselves."""
    rng = random.Random(seed)
    pool = seeds(form, folder)
    while True:
        data = mutated(rng.choice(pool), pool, rng)
        if parse(form, data, folder) == "read" and len(pool) < 200 and 0 < len(data) < 4096:
            pool.append(data)
        yield data


class Crashed(AssertionError):
    """A parser ended its process, or did not end itself."""


def fuzz(form: str, seconds: float, runs: int, seed: int) -> dict[str, Any]:
    """Try inputs for so long, or so many; an input that breaks the parser is kept.

    Inputs are tried in a child process, so that a crash or a hang ends the child only.
    """
    begin = time.perf_counter()
    done, slowest_s, peak = 0, 0.0, 0
    with tempfile.TemporaryDirectory(prefix="xstream-fuzz-", dir=SCRATCH) as scratch:
        while done < runs and (left_s := begin + seconds - time.perf_counter()) > 0:
            batch = _in_child(form, Path(scratch), min(BATCH, runs - done), left_s, seed + done)
            done += int(batch[0])
            slowest_s, peak = max(slowest_s, batch[1]), max(peak, int(batch[2]))
    if peak > MOST_BYTES:
        raise AssertionError(f"{form}: {peak:,} bytes of memory")
    return {
        "format": form, "inputs": done, "seconds": round(time.perf_counter() - begin),
        "slowest_s": round(slowest_s, 3), "peak_bytes": peak,
    }  # fmt: skip


def _in_child(
    form: str, folder: Path, runs: int, seconds: float, seed: int
) -> tuple[float, float, float]:
    """Inputs tried by a child, the seconds of the slowest, and the child's peak of memory."""
    shared = np.frombuffer(mmap.mmap(-1, 3 * 8), np.float64)
    child = os.fork()
    if not child:
        _try_inputs(form, folder, runs, seconds, seed, shared)
    status = _watched(child, shared)
    if status:
        kept = Path(f"fuzz-{form}.bin")
        kept.write_bytes(next((p.read_bytes() for p in folder.glob("input.*[!a]")), b""))
        why = "is not parsed in time" if status == -1 else "breaks the parser"
        raise Crashed(f"{form}: the input in {kept} {why} (seed {seed}, {int(shared[0])} before)")
    return float(shared[0]), float(shared[1]), float(shared[2])


def _watched(child: int, shared: Any) -> int:
    """The exit status of a child; -1 if an input has taken too long, by its processor time.

    On a busy machine the child may get no time for long; a child that sleeps is ended later. Time
    in which this process is stopped as well does not count.
    """
    process = psutil.Process(child)
    done, since_s, asleep_s = -1.0, 0.0, 0.0
    looked = time.perf_counter()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        times = process.cpu_times()
        if shared[0] != done:
            done, since_s, asleep_s = shared[0], times.user + times.system, 0.0
        worked_s = times.user + times.system - since_s
        before, looked = looked, time.perf_counter()
        asleep_s += min(looked - before, 1.0)
        if worked_s > LONGEST_S or asleep_s > ASLEEP_S:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.1)


def _try_inputs(form: str, folder: Path, runs: int, seconds: float, seed: int, shared: Any) -> None:
    """The body of the child, which never returns."""
    begin = time.perf_counter()
    try:
        trying = inputs(form, folder, seed)
        while shared[0] < runs and time.perf_counter() - begin < seconds:
            started = time.process_time()
            next(trying)
            shared[1] = max(shared[1], time.process_time() - started)
            shared[0] += 1
        shared[2] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _instrument(instrument: Callable[[Any], Any]) -> None:
    """Let the fuzzer follow the parsers in Python; all modules would take minutes."""
    for name in [name for name in sys.modules if name.startswith(FOLLOWED)]:
        for thing in vars(sys.modules[name]).values():
            found = vars(thing).values() if inspect.isclass(thing) else [thing]
            for each in found:
                if inspect.isfunction(each) and each.__module__ == name:
                    instrument(each)


def fuzz_by_coverage(form: str, seconds: float, runs: int) -> None:
    """The same parser under atheris, which looks for inputs that reach new code; never returns."""
    import atheris

    folder = Path(tempfile.mkdtemp(prefix="xstream-fuzz-", dir=SCRATCH))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds(form, folder)):
        (corpus / str(number)).write_bytes(seed)

    def one(data: bytes) -> None:
        parse(form, data, folder)

    _instrument(atheris.instrument_func)
    limits = ["-max_len=4096", f"-runs={runs}", f"-max_total_time={seconds:.0f}"]
    limits += [
        f"-artifact_prefix={tempfile.gettempdir()}/",
        f"-rss_limit_mb={MOST_BYTES >> 20}",
        f"-timeout={ASLEEP_S:.0f}",
    ]
    atheris.Setup([sys.argv[0], str(corpus), *limits], one)
    atheris.Fuzz()


def main() -> None:
    """Fuzz formats in turn and print one line of JSON for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=FORMS)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all formats together")
    parser.add_argument("--runs", type=int, default=10**9, help="inputs for each format at most")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--coverage", action="store_true", help="guided by coverage (atheris)")
    asked = parser.parse_args()
    forms = asked.only or FORMS
    if asked.coverage:
        fuzz_by_coverage(forms[0], asked.seconds, asked.runs)
    seed = asked.seed if asked.seed is not None else random.randrange(2**32)
    for form in forms:
        told = fuzz(form, asked.seconds / len(forms), asked.runs, seed)
        print(json.dumps({**told, "seed": seed}), flush=True)


if __name__ == "__main__":
    main()
