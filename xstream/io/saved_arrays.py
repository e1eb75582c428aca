"""Files of named arrays, such as the state of a kernel (`run.state`)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream.errors import InputError

__all__ = ["Arrays", "read_arrays", "write_arrays"]

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write the arrays, not compressed."""
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> Arrays:
    """The arrays of a file, which is not compressed: it takes no more memory than its length."""
    try:
        with zipfile.ZipFile(path) as file:
            if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
                raise InputError(f"{path} is compressed, and a saved state never is")
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise InputError(f"{path} cannot be read: it contains something other than arrays")
    return arrays
