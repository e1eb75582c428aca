"""Programs that a measurement starts: they end when it does, whatever they have started in turn."""

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
    """Run a program and return what it printed; it and its children are killed on an interrupt.

    >>> run_child(["echo", "fine"]).stdout
    'fine\\n'
    """
    # A session of its own: Ctrl-C of the terminal reaches us alone, and we end all of it.
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
