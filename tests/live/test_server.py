"""The page is for this user on this machine, changes nothing, and never holds up the run."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.parse
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xstream as xs
from tests.live.graphs import Events, frames, get, running
from xstream.live import server as servers
from xstream.live.feed import RunFeed
from xstream.live.server import PageServer


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten snapshots a second, so that the tests take no longer than they must."""
    monkeypatch.setattr("xstream.live.view.EVERY_S", 0.1)


def test_frames_follow_each_other_and_the_end_is_shown() -> None:
    with running(xs.Live()) as (address, stop):
        events = Events(address)
        phases, counted = [], []
        for kind, frame in events:
            if kind == "run" and not phases:
                continue  # the page was there before the run
            assert kind == "frame"
            phases.append(frame["phase"])
            counted.append(frame["counters"][0][0])
            if len(phases) == 5:
                stop.set()
        events.close()
    assert counted == sorted(counted)
    assert counted[-1] > counted[0]
    assert set(phases[:-1]) == {"running"}
    assert phases[-1] == "stopped"
    port = urllib.parse.urlsplit(address).port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_only_the_whole_address_is_answered() -> None:
    with running(xs.Live()) as (address, _):
        root = address[: address.rindex("/", 0, -1) + 1]
        token = urllib.parse.urlsplit(address).path.strip("/")
        assert len(token) >= 22  # 128 bits
        assert get(address)[0] == 200
        wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
        for path in ("", "live.js", "run.json", f"{wrong}/", f"{token}x/", "events", f"%20{token}/",
                     f"{token[:-1]}/run.json", f"x/{token}/"):  # fmt: skip
            status, _, body = get(root + path)
            assert status == 404, path
            assert token.encode() not in body
        assert get(address[:-1])[0] == 301
        for path in ("nothing", "../server.py", "%2e%2e/server.py", "live.html", "curves.json",
                     "curves.json?operator=x", "curves.json?operator=99"):  # fmt: skip
            assert get(address + path)[0] == 404, path


def test_other_hosts_methods_and_origins_are_refused() -> None:
    with running(xs.Live()) as (address, _):
        port = urllib.parse.urlsplit(address).port
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}0", ""):
            assert get(address, Host=host)[0] == 421, host
        assert get(address, Host=f"localhost:{port}")[0] == 200
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"):
            assert get(address, method)[0] == 405, method
        for path in ("", "run.json", "live.js", "page.css", "curves.json?operator=0"):
            status, headers, body = get(address + path, Origin="http://evil.example")
            assert status == 200
            assert body
            assert not [name for name in headers if name.lower().startswith("access-control")]
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"


def test_two_host_headers_are_refused() -> None:
    with running(xs.Live()) as (address, _):
        parts = urllib.parse.urlsplit(address)
        with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10) as client:
            lines = (f"GET {parts.path} HTTP/1.1", f"Host: 127.0.0.1:{parts.port}", "Host: evil")
            client.sendall("\r\n".join([*lines, "", ""]).encode())
            assert b" 421 " in client.recv(100)


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(first: bytes, second: bytes) -> bool:
        compared.append((first, second))
        return False

    monkeypatch.setattr(servers.hmac, "compare_digest", compare)
    server = PageServer()
    try:
        assert get(server.address)[0] == 404
        assert compared == [(server.token.encode(), server.token.encode())]
    finally:
        server.close()


def test_a_page_that_is_opened_late_shows_the_past() -> None:
    with running(xs.Live()) as (address, _):
        assert len(frames(address, 6)) == 6
        opening = json.loads(get(f"{address}run.json?flow=right")[2])
        assert len(opening["totals"]["t"]) >= 4
        assert opening["frame"]["counters"][0][0] > 0
        assert opening["header"]["layout"]["flow"] == "right"
        assert opening["header"]["query"] == "endless"
        names = [name for name, _ in opening["header"]["nodes"]]
        curves = json.loads(get(f"{address}curves.json?operator={names.index('wide')}")[2])
        assert len(curves["t"]) >= 4
        assert max(curves["tuples"]) > 0


def test_several_pages_and_one_that_reads_nothing() -> None:
    """The one that reads nothing holds up neither the others nor the run, nor its end."""
    with running(xs.Live()) as (address, stop):
        parts = urllib.parse.urlsplit(address)
        sleeper = socket.socket()
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sleeper.connect(("127.0.0.1", parts.port))
        asked = f"GET {parts.path}events HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\n\r\n"
        sleeper.sendall(asked.encode())
        found: list[int] = []
        readers = [
            threading.Thread(target=lambda: found.append(len(frames(address, 8)))) for _ in range(5)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(60)
        assert found == [8] * 5
        begin = time.monotonic()
        stop.set()
    sleeper.close()
    assert time.monotonic() - begin < 20


def test_a_page_that_misses_frames_gets_all_columns_of_a_heat_map() -> None:
    from xstream.live.feed import KEPT_UPDATES, RunFeed

    header = {"nodes": [["a", "source"]], "edges": [], "columns": ["tuples"]}
    memory = {"live": 0, "process": 0}
    feed = RunFeed(header)

    def push(first: int, last: int, phase: str = "running") -> None:
        for number in range(first, last):
            counters = np.full((6, 1), number).tolist()
            frame = {"t": float(number), "phase": phase, "busy": [0.0], "waiting": [],
                     "counters": counters, "memory": memory}  # fmt: skip
            feed.push(frame, {"map": {"columns": [[number, [1.0], []]]}})

    for missed in (3, KEPT_UPDATES - 1, 3 * KEPT_UPDATES):
        push(0, 2)
        events = feed.events(0.0, 1.0, 5.0)
        seen = {column[0] for column in json.loads(next(events).data)["map"]["columns"]}  # type: ignore[union-attr]
        next(events)
        push(2, 2 + missed)
        seen |= {column[0] for column in json.loads(next(events).data)["map"]["columns"]}  # type: ignore[union-attr]
        assert seen >= set(range(2 + missed))
        events.close()


def test_the_past_is_kept_in_bounded_memory() -> None:
    from xstream.live.feed import HISTORY_BYTES, HISTORY_MOMENTS, History

    many = 20_000
    history = History({"nodes": [["a", "source"]] * many, "edges": []})
    frame = {"counters": np.zeros((6, many)).tolist(), "busy": [0.0] * many, "waiting": []}
    for number in range(80):
        history.add({**frame, "t": number / 2, "memory": {"live": 0, "process": 0}})
    kept = history.totals()["t"]
    assert len(kept) * 64 * many <= HISTORY_BYTES
    assert kept[-1] == 39.5
    assert kept[0] <= 8.0  # the beginning is thinned out, not dropped
    assert np.diff(kept).max() <= 8.0
    few = History({"nodes": [["a", "source"]], "edges": []})
    frame = {"counters": np.zeros((6, 1)).tolist(), "busy": [0.0], "waiting": []}
    for number in range(3 * HISTORY_MOMENTS):
        few.add({**frame, "t": number / 2, "memory": {"live": 0, "process": 0}})
    kept = few.totals()["t"]
    assert HISTORY_MOMENTS // 2 < len(kept) <= HISTORY_MOMENTS
    assert np.diff(kept)[-HISTORY_MOMENTS // 4 :].max() == 0.5
    assert np.diff(kept).max() <= 4.0


def test_errors_and_interrupts_are_shown() -> None:
    q = xs.Query("fails")
    source = q.source(xs.io.array(np.ones(64), window=4), name="ones")

    def broken(segment: xs.SigSeg) -> None:
        raise ValueError("no such station")

    source.sink(broken, name="radio")
    live = xs.Live(say=lambda _: None)
    last: list[dict[str, object]] = []
    show = live._show
    live._show = lambda feed, frame, panels: (last.append(frame), show(feed, frame, panels))  # type: ignore[assignment,func-returns-value]
    with pytest.raises(xs.OperatorError):
        q.run(live=live)
    assert last[-1]["phase"] == "failed"
    assert "no such station" in str(last[-1]["message"])
    assert "radio" in str(last[-1]["message"])
    assert live.address is None


def test_the_end_waits_for_a_page_that_is_being_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page asks for the run, then for its events: a run that ends in between is shown too."""
    monkeypatch.setattr("xstream.live.view.LAST_S", 60.0)
    live, over = xs.Live(), threading.Event()
    show = live._show

    def shown(feed: RunFeed, frame: dict[str, Any], panels: dict[str, Any]) -> None:
        show(feed, frame, panels)
        if frame["phase"] == "stopped":
            over.set()

    live._show = shown  # type: ignore[assignment,method-assign]
    with running(live) as (address, stop):
        frames(address, 1)
        assert json.loads(get(f"{address}run.json")[2])["frame"]["phase"] == "running"
        stop.set()
        assert over.wait(60)
        (last,) = frames(address, 1)
        assert last["phase"] == "stopped"


def test_a_page_that_was_opened_and_left_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 0.0
    monkeypatch.setattr("xstream.live.feed.time", SimpleNamespace(monotonic=lambda: seconds))
    feed = RunFeed({"nodes": [], "edges": []})
    monkeypatch.setattr(feed, "_layouts", lambda flow: {})
    feed.opening("down")
    seconds = 61.0
    end = threading.Thread(target=feed.wait_for_readers, args=(60.0,), daemon=True)
    end.start()
    end.join(30)
    assert not end.is_alive()


def test_only_loopback_and_a_free_port(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(xs.InputError, match=r"127\.0\.0\.1 only"):
        PageServer("0.0.0.0")
    server = PageServer()
    q = xs.Query()
    q.source(xs.io.array(np.ones(4), window=4)).count()
    with pytest.raises(xs.InputError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        q.run(live=server.port)
    server.close()
    q.run(live=f"127.0.0.1:{server.port}")
    assert f"live view: http://127.0.0.1:{server.port}/" in capsys.readouterr().err


def test_one_view_shows_several_runs_under_one_address() -> None:
    q = xs.Query("again")
    q.source(xs.io.array(np.ones(64), window=4), name="ones").count()
    said: list[str] = []
    with xs.Live(say=said.append) as live:
        address = live.address
        q.run(live=live)
        assert live.address == address
        events = Events(str(address))
        kinds = iter(events)
        assert next(kinds)[1]["phase"] == "done"
        q.run(live=live)
        assert next(kinds)[0] == "run"
        assert json.loads(get(f"{address}run.json")[2])["frame"]["phase"] == "done"
    events.close()
    assert said == [f"live view: {address}"]
    assert live.address is None
