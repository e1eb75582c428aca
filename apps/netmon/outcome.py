"""Comparison of delivered packets with those that were sent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from netmon._kernels import HEARD_RIGHTLY, LOST
from netmon.packets import Receptions
from netmon.query import Delivered

__all__ = ["Outcome", "evaluate"]


@dataclass(frozen=True)
class Outcome:
    """Numbers of packets by outcome."""

    sent: int
    #: No receiver got them.
    unheard: int
    heard_rightly: int
    reconstructed: int
    lost: int
    #: Delivered as correct, but different from what was sent.
    wrong: int
    #: Whether the clusters equal the groups of receivers.
    clusters_right: bool

    @property
    def delivered_share(self) -> float:
        """The share of all packets that were sent."""
        return (self.heard_rightly + self.reconstructed) / self.sent

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "delivered_share": self.delivered_share}


def evaluate(heard: Receptions, delivered: Delivered) -> Outcome:
    """Compare packets word by word.

    >>> from netmon import evaluate, generate, monitor
    >>> heard = generate(packets=2_000, seed=4)
    >>> outcome = evaluate(heard, monitor(heard))
    >>> outcome.wrong, outcome.clusters_right, outcome.reconstructed > outcome.lost
    (0, True, True)
    """
    told = delivered.how != LOST
    right = (delivered.words == heard.sent[delivered.numbers]).all(axis=1)
    groups: dict[int, int] = {}
    same = len(delivered.clusters) == len(heard.groups)
    for mine, theirs in zip(delivered.clusters, heard.groups, strict=False):
        same = same and groups.setdefault(mine, theirs) == theirs
    return Outcome(
        heard.packets,
        heard.packets - len(delivered.numbers),
        int((delivered.how == HEARD_RIGHTLY).sum()),
        delivered.reconstructed,
        delivered.lost,
        int(np.count_nonzero(told & ~right)),
        same and len(set(groups.values())) == len(groups) == len(set(heard.groups)),
    )
