"""A run that is stopped does not wait for a checkpoint that takes long to write."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import xstream as xs
from xstream.recovery import checkpoints


@xs.kernel(state=np.zeros(1 << 22), out=int)
def kept(number, state, out):  # type: ignore[no-untyped-def]
    state[0] += 1.0
    out.emit(number)


def test_a_checkpoint_in_progress_is_given_up_if_one_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LAST_S", 0.0)
    stop = threading.Event()
    cancelled = []
    cancel = checkpoints.Checkpoints._cancel
    monkeypatch.setattr(
        checkpoints.Checkpoints, "_cancel", lambda self: (cancelled.append(1), cancel(self))
    )

    poll = checkpoints.Checkpoints.poll

    def unfinished(self: checkpoints.Checkpoints, wait: bool = False) -> None:
        """The checkpoint that is being written when the run is stopped takes for ever."""
        if wait or not stop.is_set():
            poll(self, wait)

    monkeypatch.setattr(checkpoints.Checkpoints, "poll", unfinished)

    def stop_during_the_second(run: xs.Run) -> None:
        assert run._checkpoints is not None
        if run.checkpoints is not None and run.checkpoints.count and run._checkpoints._pending:
            stop.set()

    query = xs.Query("large")
    query.source(xs.io.iterable(iter(int, 1), out=int)).iterate(kept).count()
    folder = tmp_path / "points"
    run = query.run(
        checkpoint=folder, checkpoint_s=0.001, stop=stop, progress=stop_during_the_second
    )
    assert run.stopped
    assert cancelled
    assert not list(folder.glob(".*.part"))
    assert [path.name for path in folder.glob("checkpoint-*")]
