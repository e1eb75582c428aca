"""Queries for the live view, and what reads it."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import xstream as xs


def endless(name: str = "endless") -> xs.Query:
    """A query that runs until it is stopped: ten windows in a hundredth of a second."""
    q = xs.Query(name)
    recording = xs.io.array(
        np.arange(2560, dtype=np.float32), rate_hz=256_000.0, window=256, repeat=1 << 40
    )
    source = q.source(xs.io.paced(recording), name="microphone")
    wide = source.rewindow(512, name="wide")
    wide.count(name="counted")
    source.rewindow(128, name="narrow").sink(lambda _: None, name="taken")
    return q


@contextmanager
def running(
    live: xs.Live, query: xs.Query | Callable[..., object] | None = None
) -> Iterator[tuple[str, threading.Event]]:
    """A run in a thread: the address of its page, and what stops it."""
    said: list[str] = []
    ready, stop = threading.Event(), threading.Event()

    def say(line: str) -> None:
        said.append(line)
        ready.set()

    live.say = say
    query = query or endless()
    run = query.run if isinstance(query, xs.Query) else query
    thread = threading.Thread(target=lambda: run(live=live, stop=stop))
    thread.start()
    try:
        assert ready.wait(60)
        yield said[0].removeprefix("live view: "), stop
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def get(address: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    parts = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=20)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


class Events:
    """The events that a page gets."""

    def __init__(self, address: str, query: str = "") -> None:
        parts = urllib.parse.urlsplit(address)
        self._connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
        self._connection.request("GET", f"{parts.path}events{query}")
        self._answer = self._connection.getresponse()
        assert self._answer.getheader("Content-Type", "").startswith("text/event-stream")

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        kind = ""
        for line in self._answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value)

    def close(self) -> None:
        self._connection.close()
        self._answer.close()


def frames(address: str, number: int, query: str = "") -> list[dict[str, Any]]:
    """The first frames that a page gets."""
    events, found = Events(address, query), []
    try:
        for kind, data in events:
            if kind == "frame":
                found.append(data)
            if len(found) == number:
                break
    finally:
        events.close()
    return found
