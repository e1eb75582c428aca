"""The operator that emits much more than it takes."""

import numpy as np

import xstream as xs


@xs.kernel(out={"time": int, "value": float})
def unpack(window, out):
    """Emits every sample of a window as a <time, value> tuple."""
    for i in range(len(window)):
        out.emit(out.start + i, np.float64(window[i]))
