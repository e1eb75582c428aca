"""Rolling segments in the state of a kernel, against plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xstream as xs
from xstream.kernels.rolling import PlainRolling

STEP = {"appended": int, "kept": int, "seen": int}
SAMPLE = np.dtype([("index", "i8"), ("touched", "i4")], align=True)


@xs.kernel(
    state={"recent": xs.Rolling(SAMPLE), "calls": np.zeros(1, np.int64)},
    out={"start": int, "stop": int, "indices": int, "touched": int},
)
def remember(appended, kept, seen, state, out):
    """Append samples, write to the latest ones, keep some, and say what is there."""
    recent = state.recent
    state.calls[0] += 1
    fresh = recent.room(appended + 1)
    for i in range(appended):
        fresh[i].index, fresh[i].touched = recent.stop + i, 0
    recent.append(appended)
    seen = min(seen, recent.stop - recent.start)
    latest = recent.at(recent.stop - seen, seen)
    for i in range(seen):
        latest[i].touched += 1
    recent.cut(recent.stop - kept)
    indices, touched = 0, 0
    for at in range(recent.start, recent.stop):
        indices += recent.at(at, 1)[0].index
        touched += recent.at(at, 1)[0].touched
    out.emit(recent.start, recent.stop, indices, touched)


def run_of(steps, memory="refcount-lazy", **options):
    q = xs.Query()
    told = q.source(xs.io.iterable(steps, out=STEP)).iterate(remember, name="remember")
    out = told.collect()
    run = q.run(memory=memory, **options)
    return run, run[out]


class _Out:
    def __init__(self):
        self.rows = []

    def emit(self, *row):
        self.rows.append(tuple(map(int, row)))


class _State:
    def __init__(self):
        self.recent, self.calls = PlainRolling(SAMPLE), np.zeros(1, np.int64)


def expected(steps):
    state, out = _State(), _Out()
    for step in steps:
        remember(*step, state, out)
    return out.rows


sizes = st.integers(0, 12)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(sizes, st.integers(0, 40), sizes), max_size=40))
@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_a_rolling_segment_is_a_list_of_samples(memory, steps):
    manager = xs.memory_manager(memory)
    assert run_of(steps, manager)[1] == expected(steps)
    assert manager.stats().live_blocks == 0


def test_what_is_cut_off_is_freed_at_once():
    manager = xs.memory_manager("refcount-lazy")
    run_of([(100, 1000, 0)] * 500, manager)
    # Ten seconds are kept; the eleventh is there until the segment is cut.
    assert manager.stats().peak_bytes <= 12 * 101 * SAMPLE.itemsize
    assert manager.stats().bytes_copied == 0


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
def test_a_run_continues_from_the_state_of_another(memory):
    steps = [(3, 7, 2), (0, 5, 1), (4, 9, 9), (1, 4, 4), (6, 6, 0)]
    first, rows = run_of(steps[:3], memory)
    state = first.state("remember")
    assert state["recent.start"].tolist() == [rows[-1][0]]
    assert len(state["recent"]) == rows[-1][1] - rows[-1][0]
    assert rows + run_of(steps[3:], memory, state={"remember": state})[1] == expected(steps)


def test_states_of_another_type_are_refused():
    state = run_of([(3, 7, 2)])[0].state("remember")
    wrong = state | {"recent": state["recent"]["index"]}
    with pytest.raises(xs.KernelError, match=r"state 'recent' is one row of .*, not 1 dimensions"):
        run_of([(1, 1, 1)], state={"remember": wrong})
    del state["recent.start"]
    with pytest.raises(xs.KernelError, match=r"keeps recent, recent\.start, calls, and is given"):
        run_of([(1, 1, 1)], state={"remember": state})


@xs.kernel(state={"recent": xs.Rolling(np.int32)}, out=int)
def misuse(asked, state, out):
    recent = state.recent
    recent.room(2)[:] = asked
    recent.append(3 if asked == 1 else 2)
    out.emit(recent.at(asked - 2, 2)[1])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (1, "cannot append more samples than there is room for"),
        (5, "lies outside of what it holds"),
        (-3, "lies outside of what it holds"),
    ],
)
def test_wrong_use_is_an_error_that_names_the_operator(asked, said):
    q = xs.Query()
    q.source(xs.io.iterable([2, asked], out=int)).iterate(misuse).collect()
    with pytest.raises(xs.OperatorError, match=rf"iterate\(misuse\).*{said}"):
        q.run()


def test_declarations_that_make_no_sense_are_refused():
    with pytest.raises(xs.KernelError, match=r"xs\.Rolling takes a dtype, not 'nothing'"):
        xs.Rolling("nothing")
    with pytest.raises(xs.KernelError, match="cannot hold samples of type object"):
        xs.Rolling(object)
    with pytest.raises(xs.KernelError, match="with each=True, state is arrays only"):

        @xs.kernel(state={"recent": xs.Rolling(np.int32)}, each=True)
        def gain(x, state):
            return x
