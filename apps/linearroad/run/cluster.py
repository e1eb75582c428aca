"""`xstream linearroad run --master`: the shares of a run as tasks of a Spark cluster.

The driver divides the run, waits, and adds up. Answers and digests stay where the tasks wrote them,
below `groups`; `summary.json` is written last and says that all of them are complete.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from linearroad import spark as sparks
from linearroad.failures import one_sentence
from linearroad.files import remove_temporaries
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, read_json, read_manifest, write_json
from linearroad.generation.progress import Show, Work, silent
from linearroad.input import length_s
from linearroad.output.sink import RunResult
from linearroad.output.summary import RunOptions
from linearroad.output.writers import RESULTS
from linearroad.run.copies import copies_of
from linearroad.run.job import check_options
from linearroad.run.merged import Merged
from linearroad.run.share import Share, shares_of
from linearroad.run.task import (
    PROGRESS,
    RESULT,
    START,
    STOP,
    Job,
    commit,
    compare_share,
    groups_folder,
    run_share,
)
from linearroad.slots import slots_of
from linearroad.storage import (
    check_writable,
    is_remote,
    make_folder,
    remove_tree,
)
from xstream.console import interrupted_with
from xstream.console.background import repeated
from xstream.console.folder import result_folder
from xstream.errors import InputError

__all__ = ["CHECKPOINT_S", "Job", "run_on_cluster"]

CHECKPOINT_S = 30.0
#: From the last task being ready to the common start of a paced run.
LEAD_S = 3.0
POLL_S = 0.2
#: Java of an executor only passes tasks on to Python.
MEMORY = "1g"


def run_on_cluster(
    job: Job, master: str | None, group: int | None = None, progress: Show = silent
) -> RunResult:
    """Run over a generated directory on a cluster; `resume` keeps what was complete before."""
    job = replace(
        job, options=replace(job.options, checkpoint_s=job.options.checkpoint_s or CHECKPOINT_S)
    )
    _check(job)
    with (
        one_sentence(job.out),
        _locked(job),
        interrupted_with(f"what is complete is kept in {job.out}; --resume goes on from there"),
    ):
        if not job.options.resume:
            for name in RESULTS:
                (job.out / name).unlink(missing_ok=True)
            remove_tree(groups_folder(job.out))
            remove_tree(job.work)
        (job.out / "summary.json").unlink(missing_ok=True)
        make_folder(job.work)
        for folder in (job.out, groups_folder(job.out)):
            make_folder(folder)
        remove_temporaries(job.out)
        with sparks.session(master, "run", MEMORY, job.options.threads) as spark:
            slots = slots_of(spark, job.options.threads)
            copies = len(copies_of(job.source, job.options.expressways))
            shares = shares_of(job.source, copies, slots, group)
            return _run(spark, job, shares, slots, progress)


def _check(job: Job) -> None:
    check_options(job.options)
    if job.options.keep_state is not None:
        raise InputError("--keep-state cannot be used with --master")
    check_writable(job.out)
    read_manifest(job.source)
    if job.history is not None and not read_manifest(job.history).get("store"):
        raise InputError(f"{job.history} has no history: generate it with --history")


def _locked(job: Job) -> Any:
    """Keep two runs of one output apart, where the storage has locks."""
    if is_remote(job.out):
        return nullcontext()
    return result_folder(job.out, job.source, RESULTS, RESULTS)


def _run(spark: Any, job: Job, shares: Sequence[Share], slots: int, progress: Show) -> RunResult:
    done = {share.number for share in shares if _result(job, share).is_file()}
    left = [share for share in shares if share.number not in done]
    if job.options.speed is not None and len(left) > slots:
        raise InputError(
            f"a paced run needs all of its {len(left)} groups at a time, and the cluster runs "
            f"{slots}: use larger groups (--group), more executors, or --speed max"
        )
    (job.work / STOP).unlink(missing_ok=True)  # of an earlier part of the run
    length = length_s(job.source, job.options.minutes) or 0
    sizes: dict[tuple[int, ...], int] = {(share.number,): length for share in left}
    work = Work("running", "stream second", PROGRESS, sizes, length * len(done))
    with progress(work, Layout(job.out)), _started_together(job, left):
        entries = sparks.run_tasks(spark, functools.partial(run_share, job), left)
    sparks.run_tasks(spark, functools.partial(commit, job), entries)
    merged = Merged(job.options.rules)
    merged.add_all(read_json(_result(job, share)) for share in shares)
    digested = job.options.answers == "digest"
    copied = len(shares) > 1 and shares[0].first_file == shares[-1].first_file
    if digested and copied and not merged.result.interrupted:  # then they end at other seconds
        compare = functools.partial(compare_share, job)
        merged.add_comparison(sparks.run_tasks(spark, compare, shares))
    _summarise(job, merged)
    remove_tree(job.work)
    return merged.result


def _result(job: Job, share: Share) -> Path:
    return groups_folder(job.out) / share.name / RESULT


def _summarise(job: Job, merged: Merged) -> None:
    """Write the summary, which says that everything else is there."""
    options: RunOptions = job.options
    files = int(read_manifest(job.source)["parameters"]["expressways"])
    told: Entry = merged.as_dict() | {
        "minutes": options.minutes,
        "generated_expressways": files,
        "history_is_shared": merged.expressways > files,
    }
    if options.expressways is not None:
        told["expressways"] = options.expressways
    write_json(job.out / "summary.json", told)


@contextmanager
def _started_together(job: Job, shares: Sequence[Share]) -> Iterator[None]:
    """Start the time of a paced run for all shares, once all of them are ready."""
    if job.options.speed is None or (job.work / START).is_file():
        yield
        return

    def look() -> float | None:
        if len(list(job.work.glob("ready-*"))) < len(shares):
            return POLL_S
        write_json(job.work / START, {"at": time.time() + LEAD_S})
        return None

    with repeated(look, POLL_S):
        yield
