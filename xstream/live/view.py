"""`Live`: shows runs while they are under way, on a page, in the terminal or in a file."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xstream.errors import GraphError, InputError, XStreamError
from xstream.live.feed import RunFeed
from xstream.live.frames import frame_of, header_of
from xstream.live.panels import Panel
from xstream.live.recording import Recorder
from xstream.views import View

if TYPE_CHECKING:
    from xstream.live.server import PageServer
    from xstream.live.terminal import TerminalView
    from xstream.run import Run
    from xstream.snapshot import Snapshot

__all__ = ["Live", "view_of"]

#: The time between two snapshots, and that over which rates are taken.
EVERY_S, RATES_S = 0.5, 1.0
#: How long the end waits for pages to take the last frame.
LAST_S = 1.0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Live:
    """A live view, for `q.run(live=...)`: a page on this machine that is updated twice a second.

    `port` is that of 127.0.0.1; 0 chooses a free one. The address, which contains a token, is
    passed to `say`, and printed on stderr by default. `page=False` opens no port. `record` is a
    file in which the run is recorded; `xstream live FILE` shows it again. `watch` shows the run in
    the terminal. `panels` are what the page shows beside the operators (`xs.HeatMap`, `xs.Limits`).

    The port is closed at the end of the run; pages that are open keep its last state. In a `with`
    block a view shows several runs, one after another, under one address.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> out = q.source(xs.io.array(np.ones(64), window=4), name="ones").count()
    >>> run = q.run(live=xs.Live(page=False, record="ones.live"))
    >>> from xstream.live.recording import Recording
    >>> recording = Recording("ones.live")
    >>> recording.frame(recording.frames - 1)["phase"]
    'done'
    """

    def __init__(
        self,
        port: int = 0,
        *,
        page: bool = True,
        record: str | Path | None = None,
        watch: bool = False,
        panels: Sequence[Panel] = (),
        say: Callable[[str], None] = _say,
    ) -> None:
        self.port, self.page, self.watch, self.say = port, page, watch, say
        self.record = None if record is None else Path(record)
        self.panels = list(panels)
        self._server: PageServer | None = None
        self._recorder: Recorder | None = None
        self._terminal: TerminalView | None = None
        self._watching: _Watching | None = None
        self._kept = False  # open for several runs

    @property
    def address(self) -> str | None:
        """The address of the page; None while there is none.

        >>> import xstream as xs
        >>> with xs.Live(say=lambda line: None) as view:
        ...     print(view.address.split("/")[2].split(":")[0])
        127.0.0.1
        >>> view.address is None
        True
        """
        return None if self._server is None else self._server.address

    def __enter__(self) -> Live:
        """Open the port and the recording."""
        self._open()
        self._kept = True
        return self

    def __exit__(self, *error: object) -> None:
        """Close them."""
        self._kept = False
        self._close()

    def begin(self, run: Run) -> None:
        """Show a run that begins. A view of your own has this method and `end`:

        >>> import numpy as np, xstream as xs
        >>> class Printed:
        ...     def begin(self, run):
        ...         print("begins")
        ...     def end(self, run, error):
        ...         print("ends with", error)
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.ones(64), window=4)).count()
        >>> run = q.run(live=Printed())
        begins
        ends with None
        """
        if self._watching is not None:
            raise GraphError("this live view shows a run already: use another one")
        if not self._kept:
            self._open()
        try:
            self._watching = _Watching(self, run)
        except BaseException:
            self._close()
            raise

    def end(self, run: Run, error: BaseException | None) -> None:
        """Show the end of the run; the port is closed unless the view is open for several.

        The query calls it, also after an error:

        >>> import numpy as np, xstream as xs
        >>> q = xs.Query()
        >>> out = q.source(xs.io.array(np.ones(64), window=4)).map(lambda w: 1 / 0).count()
        >>> try:
        ...     run = q.run(live=xs.Live(page=False))
        ... except xs.OperatorError as error:
        ...     print(str(error).split(": ", 1)[0].split(",")[0])
        map(<lambda>)
        """
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.end(error)
        if not self._kept:
            self._close()

    def _open(self) -> None:
        if self._server is not None or self._recorder is not None or self._terminal is not None:
            return
        try:
            if self.record is not None:
                self._recorder = Recorder(self.record, self.say)
            if self.page:
                from xstream.live.server import PageServer

                self._server = PageServer(port=self.port)
                self.say(f"live view: {self._server.address}")
            if self.watch:
                from xstream.live.terminal import TerminalView

                self._terminal = TerminalView()
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        server, self._server = self._server, None
        recorder, self._recorder = self._recorder, None
        terminal, self._terminal = self._terminal, None
        if terminal is not None:
            terminal.close()
        if recorder is not None:
            recorder.close()
        if server is not None:
            server.close()

    # -- for _Watching -----------------------------------------------------------------------

    def _opened(self, header: dict[str, Any]) -> RunFeed:
        """Begin to show a run."""
        feed = RunFeed(header)
        if self._recorder is not None:
            self._recorder.header(header)
        if self._server is not None:
            self._server.feed = feed
        return feed

    def _show(self, feed: RunFeed, frame: dict[str, Any], panels: Mapping[str, Any]) -> None:
        """Show a frame everywhere."""
        if self._recorder is not None:
            self._recorder.frame(frame, panels)
        if self._server is not None:
            feed.push(frame, panels)
        if self._terminal is not None:
            self._terminal.show(feed.header, frame, panels)


class _Watching:
    """Takes snapshots of a run in a thread, which stops neither the run nor its threads."""

    def __init__(self, live: Live, run: Run) -> None:
        import psutil

        self._live, self._run = live, run
        self._process = psutil.Process()
        self._before: list[Snapshot] = []
        self._over = threading.Event()
        self._feed = live._opened(header_of(run, live.panels))
        self._thread = threading.Thread(target=self._watch, name="xstream live", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        try:
            self._take("running")
            while not self._over.wait(EVERY_S):
                self._take("running")
        except Exception as error:  # an error of the view is not one of the run
            self._live.say(f"the live view has stopped: {error!r}")

    def _take(self, phase: str, message: str = "") -> None:
        last = self._run.snapshot()
        while len(self._before) > 1 and last.wall_s - self._before[1].wall_s >= RATES_S:
            del self._before[0]
        before = self._before[0] if self._before else None
        self._before.append(last)
        process_bytes = int(self._process.memory_info().rss)
        frame = frame_of(last, before, process_bytes, phase, message)
        updates = {
            str(panel.description["name"]): found
            for panel in self._live.panels
            if (found := panel.update()) is not None
        }
        self._live._show(self._feed, frame, updates)

    def end(self, error: BaseException | None) -> None:
        """Take the last snapshot."""
        self._over.set()
        self._thread.join()
        run = self._run
        interrupted = run.interrupted or isinstance(error, KeyboardInterrupt)
        phase = "interrupted" if interrupted else run.snapshot().phase
        try:
            self._take(phase, _sentence(error))
        except Exception as failed:
            self._live.say(f"the live view misses the end of the run: {failed!r}")
        self._feed.wait_for_readers(LAST_S)


def _sentence(error: BaseException | None) -> str:
    if error is None or isinstance(error, KeyboardInterrupt):
        return ""
    return str(error) if isinstance(error, XStreamError) else repr(error)


_ADDRESS = re.compile(r"(?:(?P<host>[^:]*):)?(?P<port>\d{1,5})")


def view_of(asked: object) -> View:
    """Return the view for what `live=` was given: True, a port, HOST:PORT, or a view."""
    if asked is True:
        return Live()
    if isinstance(asked, int) and not isinstance(asked, bool):
        if not 0 <= asked <= 65535:
            raise GraphError(f"live=PORT is from 0 to 65535, not {asked}")
        return Live(asked)
    if isinstance(asked, str):
        return Live(port_of(asked))
    if callable(getattr(asked, "begin", None)) and callable(getattr(asked, "end", None)):
        return asked  # type: ignore[return-value]
    raise GraphError(f"live must be True, False, a port, HOST:PORT or an xs.Live, not {asked!r}")


def port_of(address: str) -> int:
    """The port of PORT, 127.0.0.1:PORT or localhost:PORT."""
    from xstream.live.server import LOOPBACK

    form = _ADDRESS.fullmatch(address)
    if form is None or int(form["port"]) > 65535:
        raise InputError(f"the address of the live view is PORT or 127.0.0.1:PORT, not {address!r}")
    if form["host"] and form["host"] not in LOOPBACK:
        raise InputError(
            f"the live view listens on 127.0.0.1 only, not on {form['host']}: use ssh -L to see it "
            "from another machine"
        )
    return int(form["port"])
