"""Templates of adapters: the start of a new engine in Python or JavaScript."""

from __future__ import annotations

__all__ = ["TEMPLATES"]

_PYTHON = '''"""An adapter of YABench: answers a query over windows of the items on its input."""

import json
import sys


def answer(task, content):
    """Return the bindings for the items of a window; replace this by calls of your engine."""
    level = float(task["vars"]["TEMP"])
    hot = [item for item in content if item["value"] > level]
    return [{"sensor": item["station"], "obs": item["observation"]} for item in hot]


def main():
    with open(sys.argv[-1], encoding="utf-8") as file:
        task = json.load(file)  # query, vars, size_ms, slide_ms, policy, only_new, period_ms
    size, slide, number, held = task["size_ms"], task["slide_ms"], 1, []

    def report(end):
        content = [item for item in held if end - size <= item["time"] < end]
        print(json.dumps({"timestamp": end, "bindings": answer(task, content)}), flush=True)

    print(json.dumps({"ready": True}), flush=True)  # the stream starts now
    for line in sys.stdin:  # one item: time, observation, station, property, value
        item = json.loads(line)
        while item["time"] >= number * slide:
            report(number * slide)
            number += 1
            held = [each for each in held if each["time"] >= number * slide - size]
        held.append(item)
    while held and number * slide - size <= held[-1]["time"]:
        report(number * slide)
        number += 1


main()
'''
_JAVASCRIPT = """// An adapter of YABench: answers a query over windows of the items on its input.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

// query, vars, size_ms, slide_ms, policy, only_new, period_ms
const task = JSON.parse(readFileSync(process.argv.at(-1), "utf8"));
const { size_ms: size, slide_ms: slide } = task;
const write = (object) => process.stdout.write(JSON.stringify(object) + "\\n");
let held = [];
let number = 1;

// The bindings for the items of a window; replace this by calls of your engine.
function answer(content) {
  return content
    .filter((item) => item.value > task.vars.TEMP)
    .map((item) => ({ sensor: item.station, obs: item.observation }));
}

function report(end) {
  const content = held.filter((item) => end - size <= item.time && item.time < end);
  write({ timestamp: end, bindings: answer(content) });
}

write({ ready: true }); // the stream starts now
for await (const line of createInterface({ input: process.stdin })) {
  const item = JSON.parse(line); // time, observation, station, property, value
  for (; item.time >= number * slide; number += 1) {
    report(number * slide);
    held = held.filter((each) => each.time >= (number + 1) * slide - size);
  }
  held.push(item);
}
for (; held.length && number * slide - size <= held.at(-1).time; number += 1) {
  report(number * slide);
}
"""

#: Suffix of the file, the text, and the program that runs it, by language.
TEMPLATES = {
    "python": (".py", _PYTHON, "python"),
    "javascript": (".mjs", _JAVASCRIPT, "node"),
}
