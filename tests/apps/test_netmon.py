"""Network monitoring: alignment, correlations, clusters and votes by their definitions."""

from __future__ import annotations

import json
import zlib
from collections import Counter

import numpy as np
import pytest
from netmon import Receptions, declare, evaluate, generate, monitor
from netmon._kernels import (
    BY_CLUSTERS,
    CRC_TABLE,
    FIELDS,
    HEAD,
    HEARD,
    HEARD_RIGHTLY,
    LOST,
    NUMBER,
    RIGHT,
    align,
    correlate,
    crc32,
    popcount,
)
from netmon.packets import repeated
from netmon.query import sources

import xstream as xs
from tests.apps.command import call

RECEPTIONS = generate(600, receivers=6, groups=3, words=6, error_rate=2e-3, loss=0.1, seed=3)


@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_packets_are_the_same_everywhere(scheduler: str, memory: str) -> None:
    wanted = monitor(RECEPTIONS)
    found = monitor(RECEPTIONS, scheduler, memory)
    assert np.array_equal(found.numbers, wanted.numbers)
    assert np.array_equal(found.how, wanted.how)
    assert np.array_equal(found.words, wanted.words)
    assert found.clusters == wanted.clusters


def test_what_is_delivered_is_what_was_sent() -> None:
    outcome = evaluate(RECEPTIONS, monitor(RECEPTIONS))
    assert outcome.wrong == 0
    assert outcome.clusters_right
    assert outcome.reconstructed >= 5 > outcome.lost
    told = outcome.unheard + outcome.heard_rightly + outcome.reconstructed + outcome.lost
    assert told == outcome.sent == 600


def test_every_packet_that_anybody_heard_is_aligned_in_order() -> None:
    heard = RECEPTIONS
    rows = [stream.reshape(-1, heard.row) for stream in heard.streams]
    query = xs.Query()
    streams = sources(query, heard, packets_a_segment=7)
    aligned = streams[0].union(*streams[1:]).iterate(align(6, 6, 8192), 6, 6)
    out = aligned.collect()
    blocks = query.run()[out]
    found = np.concatenate([np.asarray(block) for block in blocks]).reshape(-1, FIELDS + 6 * 6)
    wanted = sorted({int(number) for each in rows for number in each[:, 0]})
    assert found[:, NUMBER].tolist() == wanted
    by_number = [{int(row[0]): row for row in each} for each in rows]
    for row in found[:: len(found) // 50]:
        for receiver, told in enumerate(by_number):
            mine = told.get(int(row[NUMBER]))
            assert bool(int(row[HEARD]) >> receiver & 1) == (mine is not None)
            if mine is not None:
                assert bool(int(row[RIGHT]) >> receiver & 1) == bool(mine[1])
                at = FIELDS + receiver * 6
                assert np.array_equal(row[at : at + 6], mine[HEAD:])


def test_correlations_are_those_of_the_error_bits() -> None:
    heard = generate(packets=800, receivers=3, groups=2, words=4, error_rate=5e-3, loss=0.0, seed=9)
    query = xs.Query()
    streams = sources(query, heard)
    pairs = streams[0].union(*streams[1:]).iterate(align(3, 4, 8192), 3, 4)
    out = pairs.iterate(correlate(3), 3, 4).collect()
    found = np.asarray(query.run()[out][-1][0]).reshape(3, 3)
    rows = np.stack([stream.reshape(-1, heard.row) for stream in heard.streams])
    known = rows[:, :, 1].any(axis=0)
    errors = rows[:, known, HEAD:] ^ heard.sent[known]
    bits = np.unpackbits(errors.view(np.uint8), axis=-1).reshape(3, -1)
    assert found == pytest.approx(np.corrcoef(bits), abs=1e-9)
    assert found[0, 1] > 0.3 > abs(found[0, 2]) * 3


def test_a_vote_needs_several_clusters() -> None:
    """Two of a group agree on a wrong bit; a third who stands apart is outvoted by neither."""
    heard = generate(
        packets=3000, receivers=3, groups=2, words=4, error_rate=4e-3, loss=0.0, seed=1
    )
    delivered = monitor(heard)
    assert delivered.clusters == (0, 0, 2)
    kinds = Counter(delivered.how.tolist())
    assert kinds[HEARD_RIGHTLY] + kinds[LOST] + kinds[BY_CLUSTERS] + kinds[3] == 3000


def test_a_receiver_that_hears_nothing_for_long_does_not_stop_the_others() -> None:
    heard = generate(packets=900, receivers=3, groups=3, words=2, error_rate=0.0, loss=0.0)
    first = heard.streams[0].reshape(-1, heard.row)
    gap = np.concatenate([first[:10], first[-5:]]).ravel()
    late = Receptions((gap, *heard.streams[1:]), 2, 900, heard.sent, heard.groups)
    for slots, told in ((1024, 900), (64, 74)):
        query = xs.Query()
        monitored = declare(sources(query, late), 2, slots=slots)
        out, _ = monitored.packets.collect(), monitored.clusters.count()
        numbers = [row[0] for row in query.run(tuple_burst=1)[out]]
        # Where there is no room to wait, what the others tell too late is lost, and nothing else.
        assert len(numbers) == told
        assert numbers == sorted(set(numbers))


def test_packets_out_of_order_are_an_error_that_names_the_operator() -> None:
    heard = generate(packets=20, receivers=2, groups=2, words=2)
    turned = heard.streams[0].reshape(-1, heard.row)[::-1].ravel()
    query = xs.Query()
    monitored = declare(sources(query, Receptions((turned, heard.streams[1]), 2, 20, heard.sent,
                                                  heard.groups)), 2)  # fmt: skip
    monitored.packets.count()
    monitored.clusters.count()
    with pytest.raises(xs.OperatorError, match=r"align.*are not in order"):
        query.run()


def test_the_checksum_is_zlib_s_and_bits_are_counted() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 5, 31):
        words = rng.integers(0, 2**64, count, np.uint64)
        assert crc32(words, CRC_TABLE) == zlib.crc32(words.tobytes())
        assert [popcount(word) for word in words] == [int(word).bit_count() for word in words]


def test_repeated_receptions_run_on() -> None:
    again = repeated(RECEPTIONS, 3)
    outcome = evaluate(again, monitor(again))
    assert outcome.sent == 1800
    assert outcome.wrong == 0


def test_the_command_tells_what_became_of_the_packets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "netmon", "demo", "--packets", 500, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sent"] == 500
    assert found["wrong"] == 0
    assert call(monkeypatch, "netmon", "demo", "--packets", 500) == 0
    assert "reconstructed from corrupted copies" in capsys.readouterr().out
    assert call(monkeypatch, "netmon", "demo", "--groups", 9) == 2
    assert "6 receivers, 16 at most, cannot stand in 9 groups" in capsys.readouterr().err
    assert call(monkeypatch, "netmon", "demo", "--packets", 10**12) == 2
    assert "--packets must be from 1 to 200,000" in capsys.readouterr().err
    assert call(monkeypatch, "netmon", "demo", "--error-rate", "nan") == 2
    assert "the error rate is below 0.1" in capsys.readouterr().err
