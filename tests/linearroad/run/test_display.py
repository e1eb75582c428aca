"""What a run shows while it runs."""

from __future__ import annotations

import io
import json
from pathlib import Path

from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.input import length_s
from linearroad.output.sink import RunResult

from xstream.console import Progress
from xstream.console.live import Live


def test_a_run_shows_its_share_of_the_stream_and_the_time_left() -> None:
    now, said = [0.0], io.StringIO()
    live = Live(True, 900, Progress("run", 900, "second", stream=said, clock=lambda: now[0]))
    live(RunResult())  # everything is still being loaded
    now[0] = 100.0
    live(RunResult(rows=1))
    said.truncate(said.seek(0))
    now[0] = 110.0
    live(RunResult(rows=1000, stream_seconds=45, lag_s=2.0))
    behind, line = said.getvalue().splitlines()
    assert behind == "falling behind: second 45 is 2.0 stream seconds late"
    assert line.startswith("run: second 45 of 900 (5 %), about 3 min left, lag 2.0 s, ")


def test_the_length_of_a_stream_is_known_from_its_manifest_or_from_minutes(tmp_path: Path) -> None:
    assert length_s(tmp_path / "rows.csv", None) is None
    assert length_s(tmp_path / "rows.csv", 5) == 300
    parameters = {"format": "csv", "expressways": 1, "minutes": 15}
    manifest = {"version": MANIFEST_VERSION, "complete": True, "parameters": parameters}
    Layout(tmp_path).manifest.write_text(json.dumps(manifest))
    assert length_s(tmp_path, None) == 900
    assert length_s(tmp_path, 5) == 300
    assert length_s(tmp_path, 20) == 900
