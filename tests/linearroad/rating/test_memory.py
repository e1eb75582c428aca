"""The estimate of a rating's memory follows the tables as they grow."""

from __future__ import annotations

import numpy as np
import pytest
from linearroad.operators.accounts import accounts
from linearroad.rating.memory import _declared, _entry_bytes


@pytest.mark.parametrize("pages", [1, 42, 43, 1000, 43_690, 43_691, 100_000])
def test_the_table_of_pages_is_as_long_as_the_ledgers(pages: int) -> None:
    entry = _declared(accounts)["entry"]
    length = len(entry)
    for used in range(pages):  # as with_room grows it, one page after the other
        if 3 * (used + 1) > 2 * length:
            length = max(2 * length, 3 * (used + 1) // 2 + 1)
    assert _entry_bytes(pages) == np.empty(length, entry.dtype).nbytes
