"""The server of the live page: read-only HTTP on this machine, and server-sent events.

Every address contains a random token, so that other users of the machine, and pages of other sites
in the same browser, cannot read it. Requests whose Host header is not this address are refused:
a site whose name is made to resolve to 127.0.0.1 gets nothing. Only GET is answered, no other
origin is allowed in, and the page may load and call nothing but this server.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
import urllib.parse
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from xstream.errors import InputError
from xstream.live.feed import Feed
from xstream.report.page import static as shared

__all__ = ["LOOPBACK", "PageServer"]

LOOPBACK = ("127.0.0.1", "localhost")
#: Pages, and other connections, at a time; more are refused.
MOST_CONNECTIONS = 64
#: How long a client may take to send a request or to take what it is sent.
PATIENCE_S = 10.0
#: An event is followed by a comment after this time, which shows that the connection still holds.
HEARTBEAT_S = 2.0
_FILES = {
    "live.js": "text/javascript", "graph.js": "text/javascript", "curves.js": "text/javascript",
    "panels.js": "text/javascript", "live.css": "text/css",
}  # fmt: skip
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATIC = Path(__file__).with_name("static")


@cache
def _file(name: str) -> bytes:
    if name == "page.css":
        return shared("page.css").encode()
    return (_STATIC / name).read_bytes()


class PageServer:
    """Serves the feed that `feed` refers to; it may change between two runs."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        if host not in LOOPBACK:
            raise InputError(
                f"the live view listens on 127.0.0.1 only, not on {host}: use ssh -L to see it "
                "from another machine"
            )
        self.token = secrets.token_urlsafe(16)
        self._feed: Feed | None = None
        self._generation = 0
        self._changed = threading.Condition()
        self._closed = False
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            self._http = _Server(("127.0.0.1", port), self)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "a port is from 0 to 65535"
            raise InputError(f"the live view cannot listen on 127.0.0.1:{port}: {why}") from error
        self.port = int(self._http.server_address[1])
        self.hosts = tuple(f"{name}:{self.port}" for name in LOOPBACK)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True,
            name="xstream live server",
        )  # fmt: skip
        self._thread.start()

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    @property
    def feed(self) -> Feed | None:
        """What is shown."""
        return self._feed

    @feed.setter
    def feed(self, feed: Feed) -> None:
        with self._changed:
            self._feed = feed
            self._generation += 1
            self._changed.notify_all()

    def is_token(self, given: str) -> bool:
        """Compare in a time that does not depend on where the two differ."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def stream(self, at_s: float, speed: float, send: Callable[[str, bytes], None]) -> None:
        """Send the events of a feed, and of those after it, until the server is closed.

        `send` raises an OSError if the page is gone.
        """
        seen = -1
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or self._generation != seen,  # noqa: B023
                    HEARTBEAT_S,
                )
                if self._closed:
                    return
                feed, changed = self._feed, self._generation != seen
                first, seen = seen < 0, self._generation
            if not changed or feed is None:
                send("", b"")
                continue
            if not first:
                send("run", b"{}")
            for event in feed.events(at_s, speed, HEARTBEAT_S):
                send(*(("", b"") if event is None else event))
                if self._closed or self._generation != seen:
                    break

    def close(self) -> None:
        """Close the port. Pages that are open keep what they show."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def admit(self) -> bool:
        """Whether another connection is allowed."""
        return self._connections.acquire(blocking=False)

    def leave(self) -> None:
        """A connection has ended."""
        self._connections.release()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], page: PageServer) -> None:
        self.page = page
        super().__init__(address, _Request)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; too many connections are closed at once."""
        if not self.page.admit():
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.page.leave()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disappears is no error of the run."""


class _Request(BaseHTTPRequestHandler):
    server: _Server
    timeout = PATIENCE_S
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "xstream", ""
    answers: ClassVar[dict[str, str]] = {"": "live.html", **{name: name for name in _FILES}}

    def setup(self) -> None:
        """Send events at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def parse_request(self) -> bool:
        """Read a request; only GET from this address with the token goes on."""
        if not super().parse_request():
            return False
        page = self.server.page
        if self.command != "GET":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered")
            return False
        if self.headers.get_all("Host", []) not in ([host] for host in page.hosts):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this is not the address of the live view")
            return False
        return True

    def do_GET(self) -> None:
        """Answer a request."""
        page = self.server.page
        parts = urllib.parse.urlsplit(self.path)
        token, _, name = parts.path.removeprefix("/").partition("/")
        if not page.is_token(token):
            self._refuse(HTTPStatus.NOT_FOUND, "use the whole address that the run has printed")
            return
        query = dict(urllib.parse.parse_qsl(parts.query))
        feed = page.feed
        if name == "" and not parts.path.endswith("/"):
            self._redirect(f"/{page.token}/")
        elif name == "events":
            self._events(_number(query.get("at"), 0.0), _number(query.get("speed"), 1.0))
        elif name == "run.json":
            self._json(None if feed is None else feed.opening(query.get("flow", "down")))
        elif name == "curves.json" and feed is not None:
            self._curves(feed, query.get("operator", ""))
        elif name == "" or name == "page.css" or name in _FILES:
            kind = _FILES.get(name, "text/css" if name else "text/html")
            self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", _file(name or "live.html"))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _curves(self, feed: Feed, operator: str) -> None:
        try:
            self._json(feed.curves(int(operator)))
        except (ValueError, IndexError):
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such operator")

    def _events(self, at_s: float, speed: float) -> None:
        self.close_connection = True
        self._begin(HTTPStatus.OK, "text/event-stream; charset=utf-8", None)

        def send(kind: str, data: bytes) -> None:
            text = b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n" if kind else b":\n\n"
            self.wfile.write(text)

        self.wfile.write(b"retry: 1000\n\n")
        self.server.page.stream(at_s, min(max(speed, 0.01), 1e4), send)

    # -- answers -----------------------------------------------------------------------------

    def _json(self, value: Any) -> None:
        data = json.dumps(value, separators=(",", ":")).encode()
        self._send(HTTPStatus.OK, "application/json", data)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", f"xstream: {why}\n".encode())

    def _redirect(self, place: str) -> None:
        self._begin(HTTPStatus.MOVED_PERMANENTLY, "text/plain", 0, {"Location": place})

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self._begin(status, kind, len(data))
        self.wfile.write(data)

    def _begin(
        self, status: HTTPStatus, kind: str, length: int | None, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": kind, **(more or {})}
        if length is not None:
            headers["Content-Length"] = str(length)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = "GET"
        headers["Connection"] = "close" if self.close_connection else "keep-alive"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: stderr belongs to the run."""


def _number(text: str | None, otherwise: float) -> float:
    try:
        value = float(text or otherwise)
    except ValueError:
        return otherwise
    return value if value == value and abs(value) < 1e12 else otherwise
