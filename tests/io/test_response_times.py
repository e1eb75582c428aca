"""Delays are counted exactly; the first late second and the cause of the longest are named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xstream.console.timeline import COLUMNS, attributed
from xstream.io.response_times import ResponseTimes

LIMITS = {"tolls": 5, "alerts": 5, "balances": 5, "expenditures": 10, "travel times": 30}
LIMITS_S = tuple(LIMITS.values())

NOTED = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 100), st.integers(0, 90_000), st.integers(1, 50)),
    min_size=1, max_size=40,
)  # fmt: skip


@given(noted=NOTED, one_by_one=st.booleans())
def test_delays_are_those_of_a_sorted_list(noted: list, one_by_one: bool) -> None:
    delays = ResponseTimes(LIMITS)
    for kind, second, delay_ms, count in noted:
        if one_by_one:
            many = np.full(count, delay_ms)
            delays.note(kind, np.full(count, second), many)
        else:
            delays.note_many(kind, second, delay_ms, count)
    found = delays.by_kind()
    for kind, name in enumerate(LIMITS):
        took = sorted(
            delay for k, _, delay, count in noted if k == kind for _ in range(count)
        )  # fmt: skip
        if not took:
            assert name not in found
            continue
        figures = found[name]
        assert figures["worst"] == took[-1] / 1000
        assert figures["late"] == sum(delay > 1000 * LIMITS_S[kind] for delay in took)
        assert figures["within_1_s"] == sum(delay <= 1000 for delay in took) / len(took)
        for key, share in (("p50", 0.5), ("p99", 0.99), ("p9999", 0.9999)):
            rank = took[max(int(np.ceil(share * len(took))) - 1, 0)]
            # Delays of more than a minute are counted, not measured.
            assert figures[key] == (min(rank, 60_000) if rank <= 60_000 else 60_000) / 1000
    late = [(s, k, d) for k, s, d, _ in noted if d > 1000 * LIMITS_S[k]]
    assert (delays.first_late is not None) == bool(late)
    if delays.first_late is not None:
        assert delays.first_late.second == min(late)[0]
    assert delays.worst[1] == max(d for _, _, d, _ in noted) / 1000


@pytest.mark.parametrize("delay_ms", [5001, 5004, 5049, 12_345])
def test_a_late_answer_is_said_to_have_taken_more_than_is_allowed(delay_ms: int) -> None:
    delays = ResponseTimes(LIMITS)
    delays.note_many(2, 7, delay_ms, 1)
    assert delays.first_late is not None
    said = delays.first_late.sentence()
    assert said == (
        f"second 7: balances took {delay_ms / 1000:.3f} stream seconds, and 5 are allowed"
    )
    assert float(said.split(" took ")[1].split()[0]) > 5


def timeline(stalled: dict[str, float]) -> list[dict[str, float]]:
    """Ten seconds at speed 4, something in the sixth of them."""
    rows = []
    for t in range(1, 11):
        row = dict.fromkeys(COLUMNS, 0.0) | {"wall_s": float(t), "stream_s": 4.0 * t, "cpu_s": t}
        if t >= 6:
            row |= {name: row[name] + more for name, more in stalled.items()}
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("stalled", "words"),
    [
        ({"steal_s": 0.5}, "0.50 s of processor time stolen by the host"),
        ({"others_cpu_s": 3.0}, "1.00 processors busy with other work"),
        ({"major_faults": 7.0}, "7 page faults that went to disk"),
        ({"minor_faults": 49_000.0}, "49,000 pages touched for the first time"),
        ({"read_bytes": 5.0 * 2**20}, "5 MiB read from disk"),
        ({"write_bytes": 3.0 * 2**20}, "3 MiB written to disk"),
    ],
)
def test_what_held_a_second_up_is_named(stalled: dict[str, float], words: str) -> None:
    sentence = attributed(timeline(stalled), 23, 1.5)
    assert sentence.startswith(
        "the answers of second 23 took longest, 1.500 stream seconds; in the"
    )
    assert words in sentence
    assert words not in attributed(timeline(stalled), 4, 1.5)
    assert "1.00 processors busy with it" in sentence


def test_a_run_without_a_timeline_still_says_what_took_longest() -> None:
    assert attributed([], 7, 0.25) == "the answers of second 7 took longest, 0.250 stream seconds"
