"""A recorded run is shown again as it was, also if the file is cut off."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import xstream as xs
from tests.apps.command import call
from tests.live.graphs import frames, get
from xstream.live.feed import Feed
from xstream.live.recording import Recorder, Recording
from xstream.live.server import PageServer
from xstream.live.terminal import TerminalView


def query(name: str = "recorded") -> xs.Query:
    q = xs.Query(name)
    q.source(xs.io.array(np.ones(64), window=4), name="ones").rewindow(8).count(name="out")
    return q


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four tenths of a second with a heat map."""
    monkeypatch.setattr("xstream.live.view.EVERY_S", 0.05)
    path = tmp_path / "run.live"
    road = xs.HeatMap("road", "Road", rows=2, limits=(0, 9), unit="", across="minute", up="segment")
    q = xs.Query("recorded")
    recorded = xs.io.array(np.ones(40), rate_hz=100.0, window=4)
    seen: list[int] = []

    def take(_: xs.SigSeg) -> None:
        road.add(len(seen), [1.0, None], [1])
        seen.append(1)

    q.source(xs.io.paced(recorded), name="ones").sink(take, name="take")
    q.run(live=xs.Live(page=False, record=path, panels=[road]))
    return path


def test_a_recording_is_replayed_as_it_was(recording: Path) -> None:
    found = Recording(recording)
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    assert found.header == lines[0]
    assert lines[0]["xstream_live"] == 1
    assert found.frames == len(lines) - 1 >= 4
    slept: list[float] = []
    shown: Feed = found
    events = [event for event in found.events(0.0, 2.0, 10.0, slept.append) if event is not None]
    replayed = [json.loads(event.data) for event in events if event.kind == "frame"]
    assert replayed == [{k: v for k, v in line.items() if k != "panels"} for line in lines[1:]]
    first, last = found.seconds
    assert sum(slept) == pytest.approx((last - first) / 2)
    columns = [
        column[0]
        for event in events
        if event.kind == "panels"
        for column in json.loads(event.data)["road"]["columns"]
    ]
    assert columns == list(range(10))
    assert shown.opening("down")["replay"] == {"from": first, "to": last}
    assert shown.curves(0)["t"][-1] == last


def test_a_replay_from_the_middle_has_the_panels_of_the_beginning(recording: Path) -> None:
    found = Recording(recording)
    first = next(found.events(found.seconds[1], 1.0, 10.0, lambda _: None))
    assert first is not None
    assert first.kind == "panels"
    assert json.loads(first.data)["road"]["columns"][0] == [0, [1.0, None], [1]]


def test_a_recording_may_be_cut_off_anywhere(recording: Path, tmp_path: Path) -> None:
    whole = recording.read_bytes()
    header, first = whole.split(b"\n")[:2]
    readable = len(header) + 1 + len(first) + 1
    cut = tmp_path / "cut.live"
    known = 0
    for length in [*range(readable + 40), *range(readable, len(whole), 97)]:
        cut.write_bytes(whole[:length])
        if length < readable:
            with pytest.raises(xs.InputError, match=r"no header|cut off"):
                Recording(cut)
        else:
            known = Recording(cut).frames
            assert known == whole[:length].count(b"\n") - 1
    assert known


def test_damaged_lines_and_other_versions(recording: Path, tmp_path: Path) -> None:
    lines = recording.read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "damaged.live"
    damaged.write_bytes(
        b"".join([lines[0], lines[1], b'{"t":\n', b"\xff\n", b'{"t":1}\n', b"[]\n", *lines[2:]])
    )
    assert Recording(damaged).frames == len(lines) - 1
    later = json.dumps({**json.loads(lines[0]), "xstream_live": 2}).encode() + b"\n"
    damaged.write_bytes(b"".join([later, *lines[1:]]))
    with pytest.raises(xs.InputError, match="version 2 of the format"):
        Recording(damaged)
    with pytest.raises(xs.InputError, match="cannot be read"):
        Recording(tmp_path / "none.live")


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.live"
    with xs.Live(page=False, record=path) as live:
        query("first").run(live=live)
        query("second").run(live=live)
    assert Recording(path).header["query"] == "second"
    assert Recording(path, 1).header["query"] == "first"
    with pytest.raises(xs.InputError, match="--run is from 1 to 2"):
        Recording(path, 3)


def test_a_full_disk_ends_the_recording_and_not_the_run() -> None:
    said: list[str] = []
    run = query().run(live=xs.Live(page=False, record="/dev/full", say=said.append))
    assert run.snapshot().phase == "done"
    assert said == ["the recording /dev/full ends here: No space left on device"]


def test_what_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(xs.InputError, match="is a directory"):
        Recorder(tmp_path, print)


def test_pages_show_a_recording(recording: Path) -> None:
    server = PageServer()
    server.feed = found = Recording(recording)
    try:
        shown = frames(server.address, found.frames, "?at=0&speed=100")
        assert [frame["t"] for frame in shown][-1] == found.seconds[1]
        assert json.loads(get(f"{server.address}run.json")[2])["replay"]["to"] == found.seconds[1]
        middle = frames(server.address, 1, f"?at={found.seconds[1]}&speed=nan")
        assert middle[0]["t"] == found.seconds[1]
    finally:
        server.close()


def test_the_command_shows_a_recording_in_the_terminal(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "live", recording, "--watch", "--speed", 100) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"{recording}: recorded, ")
    assert said[1].startswith("recorded: running at 0.0 s")
    assert said[-1].startswith("recorded: done at ")
    assert call(monkeypatch, "live", recording.parent) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_terminal_shows_the_busiest_operators(recording: Path) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    found = Recording(recording)
    stream = Terminal()
    view = TerminalView(stream)
    panel = {"times": {"rows": [["alerts", 0.1, 0.2, 0.3, 5, 2]]}}
    for number in range(found.frames):
        view.show(found.header, found.frame(number), panel)
    view.close()
    text = stream.getvalue()
    for wanted in ("recorded: done at", "busy share", "ones", "take", "░", "2 late"):
        assert wanted in text
