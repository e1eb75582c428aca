"""Properties of an input that are known before it is read."""

from __future__ import annotations

import json
from pathlib import Path

from linearroad.generation.layout import Layout
from linearroad.generation.manifest import MANIFEST_VERSION
from linearroad.input import length_s


def test_the_length_of_a_stream_is_known_from_its_manifest_or_from_minutes(tmp_path: Path) -> None:
    assert length_s(tmp_path / "rows.csv", None) is None
    assert length_s(tmp_path / "rows.csv", 5) == 300
    parameters = {"format": "csv", "expressways": 1, "minutes": 15}
    manifest = {"version": MANIFEST_VERSION, "complete": True, "parameters": parameters}
    Layout(tmp_path).manifest.write_text(json.dumps(manifest))
    assert length_s(tmp_path, None) == 900
    assert length_s(tmp_path, 5) == 300
    assert length_s(tmp_path, 20) == 900
