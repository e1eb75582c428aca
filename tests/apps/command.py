"""The command line, called from a test."""

from __future__ import annotations

import sys

import pytest

from xstream.cli import main


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of `xstream ...`."""
    monkeypatch.setattr(sys, "argv", ["xstream", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)
