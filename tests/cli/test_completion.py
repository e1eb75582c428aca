"""Shell completion, as bash asks for it and as typer installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = shutil.which("bash")
XSTREAM = Path(sys.executable).with_name("xstream")
ASK = """
eval "$(xstream --show-completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_xstream_completion xstream
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def in_bash(code: str, home: Path) -> str:
    assert BASH is not None
    environment = {**os.environ, "HOME": str(home), "PATH": f"{XSTREAM.parent}:/usr/bin:/bin"}
    done = subprocess.run([BASH, "-c", code], capture_output=True, text=True, env=environment,
                          check=True)  # fmt: skip
    return done.stdout


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [("xstream doc", "doctor"), ("xstream linearroad gen", "generate"),
     ("xstream bench statf", "statfilter"), ("xstream linearroad run --exp", "--expressways")],
)  # fmt: skip
def test_bash_completes_commands_and_options(words: str, completed: str, tmp_path: Path) -> None:
    assert in_bash(ASK.format(words=words), tmp_path).split() == [completed]


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_completion_is_installed_for_the_user(tmp_path: Path) -> None:
    # typer asks for the name of the calling shell, so bash must not replace itself with the command
    in_bash("xstream --install-completion bash && true", tmp_path)
    (script,) = (path for path in tmp_path.rglob("xstream.sh"))
    assert "_XSTREAM_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()
