"""Loops over samples that are folded into a window statistic: the same bits, errors and counts."""

from __future__ import annotations

import numpy as np
import pytest

import xstream as xs


@xs.kernel(each=True)
def scaled(x, gain):
    return x * gain


@xs.kernel(each=True)
def rounded(x):
    return int(x)


@xs.kernel(each=True)
def limited(x, limit):
    if x > limit:
        raise ValueError("above the limit")
    return x


STATISTICS = ("mean", "std", "energy", "stats")


@pytest.mark.parametrize(
    ("statistics", "dtype", "maps", "convert", "filtered"),
    [(STATISTICS, "float32", 1, False, False), (("std",), "int16", 2, True, True)],
)
def test_a_folded_loop_gives_the_bits_of_the_operators_alone(
    statistics: tuple[str, ...], dtype: str, maps: int, convert: bool, filtered: bool
) -> None:
    for width in (1, 31, 4096, 4097, 9001):
        signal = np.random.default_rng(width).normal(5.0, 90.0, 2 * width).astype(dtype)
        q = xs.Query()
        outs = []
        for name in statistics:
            stream = q.source(xs.io.array(signal, window=width))
            if filtered:
                stream = stream.std_above(-1.0)
            for _ in range(maps):
                stream = stream.map(scaled, 1.25)
            if convert:
                stream = stream.map(rounded)
            outs.append(getattr(stream, name)().collect())
        fused, alone = q.run(), q.run(fuse=False)
        for out in outs:
            assert fused[out] == alone[out]
            assert len(fused[out]) == 2
        for name, one in fused.stats.items():
            other = alone.stats[name]
            assert (one.tuples, one.samples) == (other.tuples, other.samples), name
            assert one.emitted == other.emitted, name


@pytest.mark.parametrize("statistic", ["mean", "stats"])
def test_an_error_names_the_loop_that_failed(statistic: str) -> None:
    messages = []
    for fuse in (True, False):
        q = xs.Query()
        stream = q.source(xs.io.array(np.arange(12000, dtype=np.float32), window=6000))
        stream = stream.map(scaled, 1.0).map(limited, 11000.0)
        out = getattr(stream, statistic)().collect()
        with pytest.raises(xs.XStreamError, match="above the limit") as caught:
            q.run(fuse=fuse)
        messages.append(str(caught.value))
        assert out is not None
    assert messages[0] == messages[1]
    assert messages[0].startswith("map(limited), port 'in', tuple (<SigSeg 6000 samples")
