"""What every page must have: an origin, and plots that say what is on their axes."""

from __future__ import annotations

import json
import re
from typing import Any

#: What `bench.report.machine` returns, for pages of stored figures.
MACHINE = {
    "processor": "Xeon <2>", "cores": 2, "load": 0.25, "python": "3.11.7", "xstream": "9.8.7",
    "commit": "abc1234", "date": "2026-02-03T04:05:06+00:00",
    "command": "xstream made 'a b' --of <x>",
}  # fmt: skip


def drawn(page: str) -> list[dict[str, Any]]:
    """The figures of a page."""
    found = re.findall(r"<script>figure\(\"\w+\",(\{\"data.*?\})\);</script>", page, flags=re.S)
    return [json.loads(figure) for figure in found]


def check_frame(page: str, *wanted: str) -> None:
    """The page says how it was made, and every plot has named axes and something to show."""
    origin = re.search(r'<p class="sub origin">(.*?)</p>', page)
    assert origin
    assert re.search(r"xstream \d+\.\d+", origin[1])
    assert re.search(r"on \d{4}-\d\d-\d\d at \d\d:\d\d UTC by", origin[1])
    for words in wanted:
        assert words in origin[1], words
    for figure in drawn(page):
        for axis in ("xaxis", "yaxis"):
            assert figure["layout"][axis]["title"]["text"], axis
        assert figure["data"]
