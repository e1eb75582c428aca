"""The Linear Road demo from Python, as `make demo` and `xstream linearroad demo` run it."""

from __future__ import annotations

import sys
from pathlib import Path

from linearroad.demo import FROM_MINUTE, MINUTES, SPEED, demo

if __name__ == "__main__":
    passed = demo(Path("demo-out"), FROM_MINUTE, MINUTES, SPEED, master=None).passed
    sys.exit(0 if passed else 1)
