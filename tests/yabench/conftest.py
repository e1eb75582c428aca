"""The recorded answers that tests with the marker `yabench_data` need."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "yabench"


@pytest.fixture(scope="session")
def yabench_data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the recorded answers are not here")
    return DATA
