"""`xs.io.sigmf`: recordings of radio signals with their metadata (SigMF)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from xstream.console import require_package
from xstream.errors import InputError, SchemaError
from xstream.io.feed import Block
from xstream.io.file import SampleFile, read_only_file
from xstream.io.output import OutputFile, Signals
from xstream.io.quarantine import Quarantine
from xstream.io.raw import MAPPED_READ_AHEAD, FrameWriter, RawFile, same_dtype

__all__ = ["SigmfFile", "sigmf"]

#: SigMF's names of the types that a segment can hold.
_TYPES = {
    "cf64": "c16", "cf32": "c8", "rf64": "f8", "rf32": "f4", "ri32": "i4",
    "ri16": "i2", "ri8": "i1", "ru32": "u4", "ru16": "u2", "ru8": "u1",
}  # fmt: skip
#: Complex integers, which numpy does not have: two fields.
_COMPLEX_INTEGERS = {
    "ci32": "i4",
    "ci16": "i2",
    "ci8": "i1",
    "cu32": "u4",
    "cu16": "u2",
    "cu8": "u1",
}
_LONGEST_REASON = 200


@cache
def _validator() -> Any:
    """SigMF's own schema. `sigmf.validate` checks the schema again each time, which takes long."""
    from jsonschema.validators import validator_for
    from sigmf.schema import get_schema

    schema = get_schema()
    return validator_for(schema)(schema)


@dataclass(frozen=True, eq=False)
class SigmfFile(SampleFile):
    """A pair of files: `.sigmf-meta` describes the samples in `.sigmf-data`.

    Complex integers are read as complex64, in their own scale.
    """

    kind = "sigmf"
    read_ahead = MAPPED_READ_AHEAD

    def __post_init__(self) -> None:
        super().__post_init__()
        require_package("sigmf")
        if self.path.suffix not in (".sigmf-meta", ".sigmf-data"):
            object.__setattr__(self, "path", self.path.with_name(self.path.name + ".sigmf-data"))
        object.__setattr__(self, "path", self.path.with_suffix(".sigmf-data"))

    @property
    def meta_path(self) -> Path:
        """The metadata file."""
        return self.path.with_suffix(".sigmf-meta")

    def _data(self) -> tuple[RawFile, bool]:
        """The samples as plain bytes, and whether they are pairs of real and imaginary parts."""
        read_only_file(self.kind, self.meta_path)
        read_only_file(self.kind, self.path)
        described = self._described()
        name = str(described.get("core:datatype", ""))
        base, _, order = name.partition("_")
        pairs = base in _COMPLEX_INTEGERS
        code = _COMPLEX_INTEGERS.get(base) or _TYPES.get(base)
        if code is None or order not in ("le", "be", ""):
            raise InputError(f"sigmf: {self.meta_path}: samples of type {name!r} cannot be read")
        channels, rate_hz = described.get("core:num_channels", 1), described.get("core:sample_rate")
        if type(channels) is not int or not 1 <= channels <= 1024:
            raise InputError(f"sigmf: {self.meta_path}: core:num_channels is {channels!r}")
        if rate_hz is not None and not (type(rate_hz) in (int, float) and 0 < rate_hz < 1e18):
            raise InputError(f"sigmf: {self.meta_path}: core:sample_rate is {rate_hz!r}")
        dtype = np.dtype((">" if order == "be" else "<") + code)
        layout = "interleaved" if pairs else self.layout
        raw = RawFile(
            self.path, self.window, layout, rate_hz=rate_hz, dtype=dtype,
            channels=channels * (1 + pairs),
        )  # fmt: skip
        return raw, pairs

    def _described(self) -> dict[str, Any]:
        """The global object of the metadata, which are checked against SigMF's own schema."""
        try:
            meta = json.loads(self.meta_path.read_bytes())
            wrong = next(_validator().iter_errors(meta), None)
            reason = wrong and f"{wrong.json_path}: {wrong.message}"
        except Exception as error:  # jsonschema does not document what it may raise
            reason = str(error)
        if reason:
            reason = reason.partition("\n")[0][:_LONGEST_REASON]
            raise InputError(f"sigmf: {self.meta_path} is not SigMF: {reason}")
        described: dict[str, Any] = meta["global"]
        return described

    def frame(self) -> tuple[np.dtype[Any], int, float | None, int | None]:
        raw, pairs = self._data()
        dtype, channels, rate_hz, frames = raw.frame()
        return (
            (np.dtype(np.complex64), channels // 2, rate_hz, frames)
            if pairs
            else (dtype, channels, rate_hz, frames)
        )

    def blocks(self, row: int, quarantine: Quarantine | None) -> Iterator[Block]:
        raw, pairs = self._data()
        if not pairs:
            yield from raw.blocks(row, quarantine)
            return
        for (parts,) in raw.blocks(row, quarantine):
            numbers = np.ascontiguousarray(parts, np.float32).view(np.complex64)
            yield self.columns_of(numbers.reshape(-1, raw.channels // 2))

    def check_signals(self, signals: Signals) -> None:
        same_dtype(self.kind, signals)
        if _type_name(signals.dtypes[0]) is None:
            raise SchemaError(f"write sigmf, port 'in': SigMF has no type {signals.dtypes[0]}")

    def writer(self, output: OutputFile, signals: Signals) -> SigmfWriter:
        return SigmfWriter(output, signals, self.meta_path)


def _type_name(dtype: np.dtype[Any]) -> str | None:
    code = dtype.str[1:]
    name = next((name for name, own in _TYPES.items() if own == code), None)
    return name if name is None or dtype.itemsize == 1 else name + "_le"


class SigmfWriter(FrameWriter):
    """Writes the samples, and at the end the metadata."""

    def __init__(self, output: OutputFile, signals: Signals, meta_path: Path) -> None:
        self.signals, self.meta_path = signals, meta_path
        super().__init__(output, signals.dtypes[0].newbyteorder("<"))

    def finish(self) -> None:
        described: dict[str, Any] = {
            "core:datatype": _type_name(self.signals.dtypes[0]),
            "core:version": "1.0.0",
            "core:num_channels": len(self.signals.names),
            "core:recorder": "xstream",
        }
        if self.signals.timebase.rate_hz is not None:
            described["core:sample_rate"] = self.signals.timebase.rate_hz
        meta = {"global": described, "captures": [{"core:sample_start": 0}], "annotations": []}
        output = OutputFile(self.meta_path)
        output.file.write(json.dumps(meta, indent=2).encode())
        super().finish()
        output.complete()


def sigmf(path: str | Path, window: int = 4096, **options: Any) -> SigmfFile:
    """A SigMF recording: the files `path.sigmf-meta` and `path.sigmf-data`.

    The metadata give type, rate and channels; samples are mapped into memory. Complex integers
    become complex64. As a sink it writes both files. The other options are those of all files
    (docs/sources.md). Requires sigmf: `pip install 'xstream[sigmf]'`.

    >>> import numpy as np, xstream as xs
    >>> q = xs.Query()
    >>> tone = np.exp(0.1j * np.arange(1000)).astype(np.complex64)
    >>> written = q.source(xs.io.array(tone, rate_hz=1e6)).write(xs.io.sigmf("tone"))
    >>> run = q.run()
    >>> q = xs.Query()
    >>> out = q.source(xs.io.sigmf("tone")).collect()
    >>> q.run()[out]
    [<SigSeg 1000 samples [0, 1000) complex64 at 1e+06 Hz, 1 piece, refcount-lazy>]
    """
    return SigmfFile(Path(path), window, **options)
