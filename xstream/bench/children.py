"""Child processes of a measurement: they and their own children end when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

__all__ = ["run_child"]


def run_child(
    command: Sequence[str],
    limit_seconds: float | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output; an interrupt kills it and its children.

    >>> run_child(["echo", "fine"]).stdout
    'fine\\n'
    """
    # Its own session: Ctrl-C reaches only this process, which then kills the whole session.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=cwd, env=env, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            out, errors = child.communicate(timeout=limit_seconds)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()  # `with` does not wait after Ctrl-C
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, errors)
