"""The file of a checkpoint: a head, a manifest in JSON, the image of the plan, arrays, a checksum.

    8 bytes     "XSCHECK1"
    8 bytes     the length of the file
    8 bytes     the length of the manifest
    manifest    what the checkpoint is of, positions, the sizes of the rest; padded to 8 bytes
    image       the state of the operators (xstream/engine/image.h)
    arrays      of Python objects, each padded to 8 bytes
    4 bytes     CRC32C of everything before

Numbers are little-endian. A file is either whole, which its length and checksum prove, or damaged.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xstream._native import ffi, lib
from xstream.errors import InputError

__all__ = ["FORMAT", "DamagedError", "Front", "Stored", "glimpse", "read_checkpoint"]

#: The version of the format; another one is refused.
FORMAT = 1
_MAGIC = b"XSCHECK1"
_HEAD = struct.Struct("<8sQQ")
_CRC = struct.Struct("<I")
#: The longest manifest that is read.
_MOST_MANIFEST = 1 << 30


class DamagedError(InputError):
    """A file that is no whole checkpoint: an earlier one is used instead."""


def _padded(length: int) -> int:
    return -(-length // 8) * 8


@dataclass(frozen=True)
class Front:
    """Everything of a checkpoint except for the image: what comes before it, and what follows."""

    before: bytes
    after: bytes

    @classmethod
    def of(
        cls, manifest: Mapping[str, Any], image_bytes: int, arrays: Mapping[str, NDArray[Any]]
    ) -> Front:
        """The front of a checkpoint with these contents."""
        kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        sections = [
            [name, array.dtype.str if array.dtype.names is None else array.dtype.descr,
             list(array.shape)]
            for name, array in kept.items()
        ]  # fmt: skip
        text = json.dumps({**manifest, "image_bytes": image_bytes, "arrays": sections}).encode()
        after = b"".join(
            array.tobytes().ljust(_padded(array.nbytes), b"\0") for array in kept.values()
        )
        text = text.ljust(_padded(len(text)))
        length = _HEAD.size + len(text) + image_bytes + len(after) + _CRC.size
        return cls(_HEAD.pack(_MAGIC, length, len(text)) + text, after)


@dataclass(frozen=True)
class Stored:
    """A checkpoint that was read: its manifest, the image of the plan and the arrays."""

    path: Path
    manifest: dict[str, Any]
    image: memoryview
    arrays: dict[str, NDArray[Any]]
    _file: Any = field(repr=False, default=None)


def read_checkpoint(path: Path) -> Stored:
    """Read and verify a checkpoint. Raises a DamagedError if it is not whole."""
    contents = _mapped(path)
    if len(contents) < _HEAD.size + _CRC.size:
        raise DamagedError(f"{path} is damaged: it is too short")
    magic, length, manifest_bytes = _HEAD.unpack_from(contents)
    if magic != _MAGIC or length != len(contents):
        raise DamagedError(f"{path} is damaged: its length is not the one that it was written with")
    found = lib.xs_crc32c(0, ffi.from_buffer(contents), len(contents) - _CRC.size)
    if found != _CRC.unpack_from(contents, len(contents) - _CRC.size)[0]:
        raise DamagedError(f"{path} is damaged: its checksum is wrong")
    if manifest_bytes > min(_MOST_MANIFEST, len(contents) - _HEAD.size - _CRC.size):
        raise DamagedError(f"{path} is damaged: its manifest is too long")
    begin = _HEAD.size + manifest_bytes
    try:
        manifest = json.loads(bytes(contents[_HEAD.size : begin]))
        return _sections(path, contents, begin, manifest)
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from error


def glimpse(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint that nothing was verified of; empty if there is none to be seen.

    Who prepares something with it does so again if the checkpoint turns out to be another one.
    """
    try:
        with path.open("rb") as file:
            magic, _, manifest_bytes = _HEAD.unpack(file.read(_HEAD.size))
            if magic != _MAGIC or manifest_bytes > _MOST_MANIFEST:
                return {}
            manifest = json.loads(file.read(manifest_bytes))
    except (OSError, ValueError, RecursionError, struct.error):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _mapped(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            if not file.seek(0, 2):
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror or error}") from error


def _sections(path: Path, contents: Any, begin: int, manifest: dict[str, Any]) -> Stored:
    view, end = memoryview(contents), len(contents) - _CRC.size
    image_bytes = manifest["image_bytes"]
    if type(image_bytes) is not int or not 0 <= image_bytes <= end - begin:
        raise ValueError("the image is too long")
    image = view[begin : begin + image_bytes]
    at, arrays = begin + image_bytes, {}
    for name, kind, shape in manifest["arrays"]:
        dtype = np.dtype(kind if isinstance(kind, str) else [tuple(part) for part in kind])
        if dtype.hasobject or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"array {name!r} is not one of numbers")
        count = int(np.prod(shape, dtype=object)) if shape else 1
        nbytes = count * dtype.itemsize
        if nbytes > end - at:
            raise ValueError(f"array {name!r} is too long")
        arrays[name] = np.frombuffer(view[at : at + nbytes], dtype).reshape(shape).copy()
        at += _padded(nbytes)
    if at != end:
        raise ValueError("its sections do not fill it")
    return Stored(path, manifest, image, arrays, contents)
