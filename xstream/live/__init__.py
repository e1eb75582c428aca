"""The live view: what a run does, twice a second, on a page, in the terminal or in a file.

view        `xs.Live`: begins and ends with a run, and takes a snapshot twice a second
frames      snapshots as JSON: the header of a run, and its frames
feed        the frames of a run for the pages, with bounded history
panels      what applications add to the page: heat maps and delays against limits
recording   frames in a file, and read from it
server      the pages: HTTP on this machine, server-sent events, a token in the address
terminal    the same in the terminal
static      the page
"""

from __future__ import annotations

from xstream.live.panels import HeatMap, Limits, Panel
from xstream.live.view import Live, view_of

__all__ = ["HeatMap", "Limits", "Live", "Panel", "view_of"]
