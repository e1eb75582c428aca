"""`xstream linearroad generate`: plans the tasks, runs them on Spark and writes the manifest."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linearroad import spark as sparks
from linearroad.failures import one_sentence
from linearroad.files import remove_temporaries
from linearroad.generation.layout import Layout
from linearroad.generation.manifest import Entry, check_parameters, finished, write_json
from linearroad.generation.parameters import TrafficParameters
from linearroad.generation.progress import Show, Work, silent
from linearroad.generation.runner import Runner, numbers_of, receipts
from linearroad.generation.tasks import (
    NumberedExpressway,
    count_vehicles,
    simulate_expressway,
    warm_up,
    write_traffic,
)
from linearroad.scratch import claimed
from linearroad.storage import check_writable, make_folder, place, remove_tree
from xstream.console import interrupted_with
from xstream.errors import InputError

__all__ = ["generate"]


def generate(
    parameters: TrafficParameters,
    out: Path,
    *,
    master: str | None = None,
    history: bool = False,
    merged: bool = False,
    progress: Show = silent,
    partitions: int = 0,
) -> Entry:
    """Generate what is missing below `out` and return the manifest."""
    if merged and parameters.format != "csv":
        raise InputError("--merged writes one flat file, so it requires --format csv")
    out = place(out)
    check_writable(out)
    manifest = check_parameters(out, parameters)
    sparks.require_spark()
    layout = Layout(out)
    with one_sentence(out):
        make_folder(layout.work)
        with claimed(layout.work) as alone:
            if not alone:
                raise InputError(f"another process is generating {out}: wait until it has finished")
            with interrupted_with(
                f"finished expressways are kept in {out}; run the same command again to continue"
            ):
                options = Options(master, history, merged)
                _generate(Runner(None, layout, parameters, progress, partitions), manifest, options)
            manifest["complete"] = True
            write_json(layout.manifest, manifest)
            remove_tree(layout.work)
    return manifest


@dataclass(frozen=True)
class Options:
    """What else to generate, and on which cluster."""

    master: str | None
    history: bool
    merged: bool


def _generate(run: Runner, manifest: Entry, options: Options) -> None:
    remove_temporaries(run.layout.root)
    write_json(run.layout.manifest, manifest)
    warm_up()
    with sparks.session(options.master) as run.spark:
        make_traffic(run, manifest)
        if options.history:
            from linearroad.history.tasks import make_history

            make_history(run, manifest)
        if options.merged and not run.layout.merged.exists():
            _merge(run)


def _merge(run: Runner) -> None:
    from linearroad.generation.merged_file import merge_traffic

    root, parameters = run.layout.root, run.parameters
    work = Work("merging", "second", "merged", {(0,): 60 * parameters.minutes})
    run.tasks(work, functools.partial(merge_traffic, root), [parameters.expressways])


def make_traffic(run: Runner, manifest: Entry) -> None:
    """Simulate and write the expressways that are missing; fill in the manifest."""
    layout, parameters = run.layout, run.parameters
    root, everyone = layout.root, range(parameters.expressways)
    written = receipts(layout, "traffic", manifest.get("traffic", []))
    lacking = [x for x in everyone if not finished(root, written.get((x,)))]
    simulated = receipts(layout, "simulated", manifest.get("simulated", []))
    to_simulate = [
        x
        for x in everyone
        if (x,) not in simulated
        or not layout.trips(x).exists()
        or (x in lacking and not layout.trace(x).exists())
    ]
    length = parameters.seconds
    sizes: dict[tuple[int, ...], int] = {(x,): length for x in to_simulate}
    before = length * (len(everyone) - len(to_simulate))
    work = Work("simulating", "stream second", "simulated", sizes, before)
    done = run.tasks(work, functools.partial(simulate_expressway, root, parameters), to_simulate)
    simulated |= {numbers_of(entry): entry for entry in done}
    manifest["simulated"] = [simulated[(x,)] for x in everyone]

    if lacking or "vehicles" not in manifest:
        places, manifest["vehicles"] = number_expressways(run, manifest["simulated"])
        sizes = {(x,): _rows(simulated[(x,)]) for x in lacking}
        before = sum(map(_rows, simulated.values())) - sum(sizes.values())
        done = run.tasks(
            Work("writing", "row", "traffic", sizes, before),
            functools.partial(write_traffic, root, parameters), [places[x] for x in lacking],
        )  # fmt: skip
        written |= {numbers_of(entry): entry for entry in done}
    manifest["traffic"] = [written[(x,)] for x in everyone]
    manifest["totals"] = {
        "rows": sum(entry["rows"] for entry in manifest["traffic"]),
        "reports": sum(entry["reports"] for entry in manifest["simulated"]),
        "queries": sum(entry["queries"] for entry in manifest["simulated"]),
        "vehicles": manifest["vehicles"],
    }
    write_json(layout.manifest, manifest)
    for x in everyone:
        layout.trace(x).unlink(missing_ok=True)


def _rows(simulated: Entry) -> int:
    return int(simulated["reports"] + simulated["queries"])


def number_expressways(
    run: Runner, simulated: Sequence[Entry]
) -> tuple[list[NumberedExpressway], int]:
    """The first VID and QID of each expressway, dense over all, and the number of VIDs."""
    root, parameters = run.layout.root, run.parameters
    everyone = range(parameters.expressways)
    counts = sparks.run_tasks(
        run.spark, functools.partial(count_vehicles, root, parameters), everyone, run.partitions
    )
    first_vid = np.concatenate(([0], np.cumsum(counts))).tolist()
    first_qid = np.concatenate(([0], np.cumsum([entry["queries"] for entry in simulated]))).tolist()
    places = [
        NumberedExpressway(x, first_vid[x], first_vid[parameters.before(x)], first_qid[x])
        for x in everyone
    ]
    return places, first_vid[-1]
