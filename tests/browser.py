"""Chromium for tests: pages in several forms, their errors, what they say, and screenshots.

Chromium is driven by its own protocol over two pipes, so neither a port nor another package is
needed. One browser serves all pages of a test module.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
#: How long an answer may take where other processes have the machine.
PATIENCE_S = 200.0
#: Where screenshots are kept if a person wants to look at them.
KEEP = os.environ.get("XSTREAM_SCREENSHOTS")


class Form(NamedTuple):
    """How a page is looked at."""

    width: int
    dark: bool

    @property
    def name(self) -> str:
        return f"{'phone' if self.width < 600 else 'desktop'}-{'dark' if self.dark else 'light'}"


FORMS = [Form(width, dark) for width in (1280, 420) for dark in (False, True)]


class Browser:
    """A running Chromium with one tab."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self.folder = tempfile.TemporaryDirectory(prefix="chromium-")
        read, self._write = os.pipe()
        self._read, write = os.pipe()

        def wire() -> None:  # Chromium reads commands from 3 and answers on 4
            kept, answers = os.dup(read), os.dup(write)
            os.dup2(kept, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, *OPTIONS, f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read)
        os.close(write)
        self._number, self._buffer, self._session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        targets = self.send("Target.getTargets")["targetInfos"]
        tab = next(each for each in targets if each["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """End Chromium and remove its files."""
        self.process.terminate()
        self.process.wait(30)
        os.close(self._write)
        os.close(self._read)
        self.folder.cleanup()

    def _message(self, seconds: float) -> dict[str, Any] | None:
        """The next message; None if there is none in time."""
        until = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, until - time.monotonic()))
            if not ready:
                return None
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("Chromium ended")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        call = {"id": self._number, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._write, json.dumps(call).encode() + b"\0")
        while (found := self._message(PATIENCE_S)) is not None:
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                result: dict[str, Any] = found.get("result", {})
                return result
            if "method" in found:
                self.events.append(found)
        raise RuntimeError(f"Chromium does not answer {method}")

    def appear(self, form: Form, height: int = 900) -> None:
        """Set the size of the window and the colour scheme."""
        self.send("Emulation.setDeviceMetricsOverride", width=form.width, height=height,
                  deviceScaleFactor=1, mobile=form.width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if form.dark else "light"}
        self.send("Emulation.setEmulatedMedia", media="screen", features=[scheme])

    def open(self, address: str) -> None:
        """Load a page and wait until its scripts have run once."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            found = self._message(PATIENCE_S)
            assert found is not None, f"{address} does not load"
            self.events.append(found)
        self.run("new Promise(done=>requestAnimationFrame(()=>requestAnimationFrame(done)))")

    def run(self, code: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        found = self.send("Runtime.evaluate", expression=code, returnByValue=True,
                          awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, code: str, seconds: float = 30) -> Any:
        """The value of an expression once it is true."""
        until = time.monotonic() + seconds
        while not (value := self.run(code)):
            assert time.monotonic() < until, f"not true after {seconds:g} s: {code}"
            time.sleep(0.05)
        return value

    def errors(self) -> list[str]:
        """Errors of scripts, and of what the page could not load."""
        found = []
        for event in self.events:
            told = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"].get("exception", {}).get("description")))
            elif event["method"] == "Log.entryAdded" and told["entry"]["level"] == "error":
                found.append(told["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] == "error":
                found.append(str([each.get("value") for each in told["args"]]))
        return found

    def screenshot(self, path: Path) -> bytes:
        """Save the whole page as a PNG and return it."""
        height = min(self.run("document.documentElement.scrollHeight"), 12_000)
        width = self.run("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        data = b64decode(taken["data"])
        path.write_bytes(data)
        if KEEP:
            Path(KEEP).mkdir(parents=True, exist_ok=True)
            (Path(KEEP) / path.name).write_bytes(data)
        return data
