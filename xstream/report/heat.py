"""Heat maps: an image inside the axes of a plot, so that the small bundle of plotly suffices."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from xstream.report.plots import graph_objects, layout

__all__ = ["SLOW_TO_FAST", "heat_map", "png"]

#: Red to blue through yellow, which colour-blind readers can tell apart.
SLOW_TO_FAST = ("#a50026", "#f46d43", "#fee090", "#abd9e9", "#4575b4")
_LEVELS = 255  # palette entry 0 is transparent: no value


def _palette(colors: Sequence[str]) -> bytes:
    """Return the colours of all levels, by linear interpolation."""
    import numpy as np

    stops = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in colors], float)
    at = np.linspace(0, len(stops) - 1, _LEVELS)
    mixed = [np.interp(at, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
    return bytes(3) + np.stack(mixed, axis=1).round().astype(np.uint8).tobytes()


def png(values: Any, low: float, high: float, colors: Sequence[str] = SLOW_TO_FAST) -> bytes:
    """Return a PNG with one pixel per value, the first row at the top; NaN is transparent.

    >>> png([[0.0, 1.0], [float("nan"), 0.5]], 0, 1)[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    import numpy as np

    numbers = np.asarray(values, float)
    scaled = np.clip((numbers - low) / (high - low), 0, 1) * (_LEVELS - 1)
    levels = np.where(np.isnan(numbers), 0, np.nan_to_num(scaled).round() + 1).astype(np.uint8)
    rows, columns = levels.shape
    lines = np.hstack([np.zeros((rows, 1), np.uint8), levels]).tobytes()  # 0: no filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", _palette(colors))
        + chunk(b"tRNS", b"\0")
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )


def heat_map(
    title: str,
    x: str,
    y: str,
    values: Any,
    size: tuple[float, float],
    limits: tuple[float, float],
    unit: str,
    colors: Sequence[str] = SLOW_TO_FAST,
) -> Any:
    """Draw values by place (rows, upwards) and time (columns); empty if there is none.

    `size` is the extent of the values in units of the axes, `limits` the values of the first and
    the last colour.
    """
    import numpy as np

    figure = graph_objects().Figure()
    numbers = np.asarray(values, float)
    if not np.isnan(numbers).all():
        data = b64encode(png(numbers[::-1], *limits, colors)).decode()
        figure.add_layout_image(
            source=f"data:image/png;base64,{data}", xref="x", yref="y", x=0, y=size[1],
            sizex=size[0], sizey=size[1], sizing="stretch", layer="below",
        )  # fmt: skip
    scale = [[at / (len(colors) - 1), color] for at, color in enumerate(colors)]
    figure.add_scatter(  # without a point: it has the colour bar
        x=[None], y=[None], mode="markers", hoverinfo="skip", showlegend=False,
        marker={"color": [limits[0]], "cmin": limits[0], "cmax": limits[1], "colorscale": scale,
                "showscale": True,
                "colorbar": {"title": {"text": unit}, "thickness": 12, "len": 0.9}},
    )  # fmt: skip
    return layout(
        figure, title, x, y, showlegend=False, height=520, margin_b=60, margin_r=8,
        xaxis_range=[0, size[0]], yaxis_range=[0, size[1]], xaxis_showgrid=False,
        yaxis_showgrid=False,
    )  # fmt: skip
