"""An engine in plain Python that can be wrong on purpose: late, lossy or shifted.

    python -m yabench.engines.faulty_adapter [right|late|lossy|shifted] TASK

`late` answers one and a half slides after the end of a window, `lossy` leaves out every fifth
binding, and the windows of `shifted` start one second late, as C-SPARQL's did in the paper.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Item = dict[str, Any]


def answer(query: str, content: list[Item]) -> list[Item]:
    """Answer a query of xstream's language over the items of a window."""
    kind, level = query.split()[0], float(query.split()[-1])
    hot = [item for item in content if item["value"] > level]
    if kind == "select":
        return [{"sensor": item["station"], "obs": item["observation"]} for item in hot]
    if kind == "average":
        values = [item["value"] for item in hot]
        return [{"avg": sum(values) / len(values) if values else 0.0}]
    return [
        {"sensor": one["station"], "ob1": one["observation"], "value1": one["value"],
         "obs": two["observation"]}
        for one in hot for two in hot
        if one["station"] == two["station"] and one["value"] > two["value"]
    ]  # fmt: skip


def main() -> None:
    """Hold the items of the last windows in a list, and answer when a window closes."""
    fault = sys.argv[-2] if sys.argv[-2] in ("late", "lossy", "shifted") else "right"
    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)
    size, slide, number = task["size_ms"], task["slide_ms"], 1
    lag = slide * 3 // 2 if fault == "late" else 0
    held: list[Item] = []
    print('{"ready": true}', flush=True)

    def report(end: int) -> None:
        start = max(0, end - size) + (1000 if fault == "shifted" else 0)
        content = [item for item in held if start <= item["time"] < end]
        found = answer(task["query"], content)
        if fault == "lossy":
            found = [row for place, row in enumerate(found) if place % 5 != 4]
        print(json.dumps({"timestamp": end, "bindings": found}), flush=True)

    for line in sys.stdin:
        item = json.loads(line)
        while item["time"] >= number * slide + lag:
            report(number * slide)
            number += 1
            held = [each for each in held if each["time"] >= number * slide - size]
        held.append(item)
    while held and number * slide - size <= held[-1]["time"]:
        report(number * slide)
        number += 1


if __name__ == "__main__":
    main()
