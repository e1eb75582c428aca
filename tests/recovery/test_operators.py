"""A run that is interrupted anywhere and goes on in a new one has the results of one run."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import xstream as xs
from tests.recovery.graphs import GRAPHS, results
from tests.recovery.interrupted import interrupted_run
from xstream.errors import GraphError

OPTIONS = st.fixed_dictionaries(
    {
        "scheduler": st.sampled_from(xs.SCHEDULER_NAMES),
        "memory": st.sampled_from(xs.MANAGER_NAMES),
        "fuse": st.booleans(),
    }
)

#: Their results depend on the order of arrival or on the length of queues, and so on the scheduler.
IN_ORDER_OF_ARRIVAL = ("held", "cycle", "joined", "divided")


@cache
def uninterrupted(name: str, burst: int, scheduler: str = "df") -> list[Any]:
    query, sinks = GRAPHS[name]()
    return results(query.run(scheduler, tuple_burst=burst, slice_us=slice_of(scheduler)), sinks)


def slice_of(scheduler: str) -> float | None:
    return 50.0 if scheduler == "fifo-slice" else None


@pytest.mark.parametrize("name", GRAPHS)
@given(
    first=OPTIONS, later=OPTIONS, burst=st.integers(1, 9),
    looks=st.lists(st.integers(0, 120), min_size=1, max_size=3),
    settled=st.booleans(),
)  # fmt: skip
@settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_a_run_in_pieces_gives_the_results_of_one(
    name: str, first: dict[str, Any], later: dict[str, Any], burst: int, looks: list[int],
    settled: bool,
) -> None:  # fmt: skip
    if name in IN_ORDER_OF_ARRIVAL or not settled:
        exact = "df" if first["scheduler"] == "df" else "fifo"  # in the others it depends on time
        later = first = {**first, "scheduler": exact}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for number, count in enumerate(looks):
            query, _ = GRAPHS[name]()
            how = first if number == 0 else later
            interrupted_run(
                query, count, folder, tuple_burst=burst, resume=number > 0, settled=settled, **how
            )
        query, sinks = GRAPHS[name]()
        run = query.run(
            tuple_burst=burst, slice_us=slice_of(later["scheduler"]), checkpoint=folder,
            resume=True, **later,
        )  # fmt: skip
        scheduler = first["scheduler"] if later is first else "df"
        wanted = uninterrupted(name, burst, scheduler)
        assert results(run, sinks) == wanted
        assert run.checkpoints is not None


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_settle_and_go_on(name: str, threads: int, tmp_path: Path) -> None:
    for looks in (0, 1, 2, 5):
        query, _ = GRAPHS[name]()
        interrupted_run(query, looks, tmp_path, threads=threads, resume=looks > 0)
    query, sinks = GRAPHS[name]()
    run = query.run(tuple_burst=4, checkpoint=tmp_path, resume=True, threads=threads)
    assert results(run, sinks) == uninterrupted(name, 4)


def test_statistics_go_on_as_well(tmp_path: Path) -> None:
    whole = GRAPHS["rewindow"]()[0].run(tuple_burst=4)
    interrupted_run(GRAPHS["rewindow"]()[0], 7, tmp_path)
    run = GRAPHS["rewindow"]()[0].run(tuple_burst=4, checkpoint=tmp_path, resume=True)
    assert run.source_samples == whole.source_samples
    counted = {name: (each.tuples, each.emitted) for name, each in run.stats.items()}
    assert counted == {name: (each.tuples, each.emitted) for name, each in whole.stats.items()}


def test_an_operator_with_hidden_state_is_refused(tmp_path: Path) -> None:
    class Hidden:
        total = 0.0

        def __call__(self, x: float) -> float:
            self.total += x
            return self.total

    total = 0.0

    def closed(x: float) -> float:
        nonlocal total
        total += x
        return total

    for function, said in ((Hidden(), "an object (Hidden)"), (closed, "changes 'total'")):
        q = xs.Query()
        q.source(xs.io.iterable([1.0], out=float)).map(function, out=float).collect()
        with pytest.raises(GraphError, match="cannot be part of a checkpoint") as caught:
            q.run(checkpoint=tmp_path)
        assert said in str(caught.value)
