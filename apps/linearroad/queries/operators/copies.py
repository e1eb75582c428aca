"""Copies of expressways: the same traffic with an XWay, VIDs and QIDs of its own."""

from __future__ import annotations

import numpy as np

import xstream as xs
from linearroad.queries.layout import REQUEST_WIDTH, column

__all__ = ["shift"]

_KIND, _VID, _XWAY, _QID = range(4)  # fields of a request


@xs.kernel(out={"vid": column("int32"), "xway": column("int32"), "request": column("int32")})
def shift(vid, xway, request, vid_by, xway_by, qid_by, out):
    """A second's vehicles, expressways and requests of one copy; all other columns are shared."""
    vids, xways = np.empty(len(vid), np.int32), np.empty(len(xway), np.int32)
    for i in range(len(vid)):
        vids[i] = vid[i] + vid_by
        xways[i] = xway[i] + xway_by
    requests = request.copy()
    for at in range(0, len(request), REQUEST_WIDTH):
        requests[at + _VID] += vid_by
        requests[at + _QID] += qid_by
        if requests[at + _KIND] != 2:  # a balance is of all expressways
            requests[at + _XWAY] += xway_by
    out.emit_at(0, vids, xways, requests)
