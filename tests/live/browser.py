"""Drives Chromium over its debugging pipe: opens pages, runs scripts, clicks, takes pictures."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")


class Browser:
    """Chromium without a window; messages are JSON that ends with a zero byte."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        (low, to_child), (from_child, high) = os.pipe(), os.pipe()
        # Above 9, so that neither is overwritten when they become 3 and 4.
        reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (low, high))
        os.close(low)
        os.close(high)
        # It expects the pipe as files 3 and 4.
        become = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
            "os.execv(sys.argv[3], sys.argv[3:])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", become, str(reads), str(writes), CHROMIUM, "--headless",
             "--no-sandbox", "--disable-gpu",
             "--no-proxy-server", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}"],
            pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(reads)
        os.close(writes)
        self._to, self._from = os.fdopen(to_child, "wb", 0), os.fdopen(from_child, "rb", 0)
        self._number, self._rest = 0, b""
        #: What was thrown or logged as an error in a page.
        self.errors: list[str] = []
        self._targets: list[str] = []

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._from.read(1 << 16)
            assert more, "Chromium has ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            asked["sessionId"] = session
        self._to.write(json.dumps(asked).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(message["params"]["exceptionDetails"])[:2000])
            if message.get("method") == "Log.entryAdded":
                entry = message["params"]["entry"]
                if entry["level"] == "error":
                    self.errors.append(entry["text"])

    def close_pages(self) -> None:
        while self._targets:
            self.call("Target.closeTarget", targetId=self._targets.pop())

    def open(self, address: str, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._targets.append(target)
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        page.media("dark" if dark else "light")
        page.call("Page.navigate", url=address)
        return page


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def media(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def value(self, script: str) -> Any:
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 20.0) -> Any:
        """The value of a script, once it is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if found := self.value(script):
                    return found
            except AssertionError:  # the page is still loading
                pass
            time.sleep(0.05)
        raise AssertionError(f"{script}: not within {seconds} s; {self.browser.errors}")

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    browser = Browser(folder / "profile")
    try:
        yield browser
    finally:
        browser.close()
