"""Accounts by the rules of the thesis, for all vehicles of a partition at once.

The discount makes each toll depend on those before it, so the rows of a vehicle are processed in
order of time: the first rows of all vehicles together, then the second ones, and so on. A vehicle
that enters segments of several expressways in one second is left to `thesis_accounts`, because its
notifications can be matched in several ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from linearroad.validation.thesis_accounts import ANSWERS

__all__ = ["ROWS", "balances_of"]

EVENT, REQUEST = range(2)
BALANCE = 2
#: Events, and requests with their kind. `full` and `half`: whether the notification that was sent
#: for an entry is accepted without and with the discount.
ROWS = """what int, vid int, time int, xway int, entered boolean, first boolean, credited boolean,
    speed bigint, base bigint, sent_speed bigint, sent_toll bigint, full boolean, half boolean,
    kind int, qid int"""
Columns = dict[str, NDArray[Any]]


def balances_of(credit: int, least: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function from the batches of a partition (`ROWS`) to those of the answers."""

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        found = list(batches)
        if found:
            yield settled(pa.Table.from_batches(found), credit, least)

    return answers


def settled(table: Any, credit: int, least: int) -> Any:
    """The expected answers to whole vehicles, given in any order."""
    column = {name: values.to_numpy() for name, values in zip(table.column_names, table.columns,
                                                              strict=True)}  # fmt: skip
    order = np.lexsort((column["what"], column["time"], column["vid"]))
    column = {name: values[order] for name, values in column.items()}
    vid, entered = column["vid"], column["entered"]
    begins = np.diff(vid, prepend=vid[:1] - 1) != 0
    starts = np.flatnonzero(begins)
    accepted, amount = _followed(column, begins, starts, credit, least)
    speed = np.where(accepted, column["sent_speed"], column["speed"])
    entries = np.cumsum(entered)
    before = np.repeat(entries[starts] - entered[starts], np.diff(starts, append=len(vid)))
    kept = np.flatnonzero(entered | (column["what"] == REQUEST))
    told = entered[kept]
    columns = (
        np.where(told, 0, column["kind"][kept]), column["time"][kept],
        np.where(told, vid[kept], column["qid"][kept]), amount[kept],
        np.where(told, speed[kept], 0), np.zeros(len(kept), np.int64),
        np.where(told, entries[kept] - before[kept] - 1, 0),
    )  # fmt: skip
    arrays = [pa.array(values, field.type) for values, field in zip(columns, ANSWERS, strict=True)]
    return pa.record_batch(arrays, schema=ANSWERS)


def _followed(
    column: Columns, begins: NDArray[np.bool_], starts: NDArray[np.int64], credit: int, least: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """For each row whether what was sent is accepted, and its toll or balance.

    `begins` marks the first row of each vehicle, and `starts` are their places.
    """
    lengths = np.diff(starts, append=len(begins))
    longest = np.argsort(-lengths, kind="stable")  # in each round the vehicles left are the first
    starts, lengths = starts[longest], lengths[longest]
    new_second = begins | (np.diff(column["time"], prepend=0) != 0)
    both = (column["vid"].astype(np.int64) << 32) | column["xway"]
    _, slot = np.unique(both, return_inverse=True)  # an account for each vehicle and expressway
    spent, issued = np.zeros((2, len(begins)), np.int64)
    total, earlier = np.zeros((2, len(starts)), np.int64)
    accepted, amount = np.zeros(len(begins), bool), np.zeros(len(begins), np.int64)
    for turn in range(int(lengths.max(initial=0))):
        left = int(np.searchsorted(-lengths, -turn))
        rows = starts[:left] + turn
        now = {name: values[rows] for name, values in column.items()}
        here, account = now["entered"], slot[rows]
        earlier[:left] = np.where(new_second[rows], total[:left], earlier[:left])
        halved = earlier[:left] >= least
        right = here & np.where(halved, now["half"], now["full"])
        usual = np.where(halved, now["base"] // 2, now["base"])
        toll = np.where(right, now["sent_toll"], usual)
        charge = np.where(here & ~now["first"], issued[account], 0) - credit * now["credited"]
        spent[account] += charge
        total[:left] += charge
        issued[account] = np.where(here, toll, issued[account])
        balance = np.where(now["kind"] == BALANCE, total[:left], spent[account])
        accepted[rows], amount[rows] = right, np.where(here, toll, balance)
    return accepted, amount
