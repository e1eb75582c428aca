"""Measurements of a process in which nothing else has run.

The process that runs a test has run many others: its heap is a gigabyte of gaps that any allocation
may fill or spare, and threads of other tests may end in the middle of a measurement.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CODE = """\
import importlib, json, sys
module, function, arguments = sys.argv[1:]
result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
print(json.dumps(result))
"""


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of a module when a process of its own calls it; a failure there
    fails the test.

    Arguments and the result pass through JSON.
    """
    done = subprocess.run(
        [sys.executable, "-c", CODE, function.__module__, function.__name__, json.dumps(arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
