"""The footer of a Parquet file, with the places of its pages moved.

A footer is a struct in the compact protocol of Thrift. It is copied value by value; those that are
places of pages, of their indexes and of Bloom filters are changed on the way.
"""

from __future__ import annotations

__all__ = ["moved_footer"]

#: Numbers of fields from the footer down to a place in the file: of row groups, of their columns,
#: of the metadata of columns.
_PLACES = frozenset(
    [(4, 5), (4, 1, 2), (4, 1, 4), (4, 1, 6), (4, 1, 3, 9), (4, 1, 3, 10), (4, 1, 3, 11),
     (4, 1, 3, 14)]
)  # fmt: skip
_STOP, _TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12,
)  # fmt: skip
_INTEGERS = (4, 5, _I64)


def moved_footer(footer: bytes, by: int) -> bytes:
    """The same footer for a file in which all pages come `by` bytes later.

    Raises a ValueError if the bytes are no footer.
    """
    copier = _Copier(footer, by)
    try:
        copier.struct(())
    except IndexError:
        raise ValueError("the footer of a Parquet file ends too early") from None
    return bytes(copier.out)


class _Copier:
    """Copies a struct, and moves the places in it."""

    def __init__(self, given: bytes, by: int) -> None:
        self.given, self.by, self.at = given, by, 0
        self.out = bytearray()

    def byte(self) -> int:
        """Copy a byte."""
        value = self.given[self.at]
        self.at += 1
        self.out.append(value)
        return value

    def bytes(self, count: int) -> None:
        """Copy bytes."""
        if count > len(self.given) - self.at:
            raise IndexError
        self.out += self.given[self.at : self.at + count]
        self.at += count

    def read_number(self) -> int:
        """Read a number of variable length."""
        value = shift = 0
        while True:
            part = self.given[self.at]
            self.at += 1
            value |= (part & 0x7F) << shift
            if part < 0x80:
                return value
            shift += 7

    def write_number(self, value: int) -> None:
        """Write a number of variable length."""
        while value >= 0x80:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def number(self) -> int:
        """Copy a number of variable length."""
        value = self.read_number()
        self.write_number(value)
        return value

    def struct(self, path: tuple[int, ...]) -> None:
        """Copy a struct up to its end."""
        field = 0
        while (head := self.byte()) != _STOP:
            if head >> 4:
                field += head >> 4
            else:
                field = self.number() >> 1  # zigzag; numbers of fields are not negative
            self.value(head & 15, (*path, field))

    def value(self, kind: int, path: tuple[int, ...]) -> None:
        """Copy the value of a field."""
        if kind == _I64 and path in _PLACES:
            place = self.read_number() >> 1
            self.write_number((place + self.by if place else 0) << 1)  # 0: there is none
        elif kind in _INTEGERS:
            self.number()
        elif kind == _STRUCT:
            self.struct(path)
        elif kind in (_LIST, _SET):
            self.items(path)
        elif kind == _BINARY:
            self.bytes(self.number())
        elif kind == _BYTE:
            self.byte()
        elif kind == _DOUBLE:
            self.bytes(8)
        elif kind == _MAP:
            self.entries(path)
        elif kind not in (_TRUE, _FALSE):  # which have no bytes of their own
            raise ValueError(f"the footer of a Parquet file has a value of type {kind}")

    def items(self, path: tuple[int, ...]) -> None:
        """Copy a list or a set."""
        head = self.byte()
        count = head >> 4 if head >> 4 < 15 else self.number()
        for _ in range(count):
            self.item(head & 15, path)

    def entries(self, path: tuple[int, ...]) -> None:
        """Copy a map."""
        count = self.number()
        kinds = self.byte() if count else 0
        for _ in range(count):
            self.item(kinds >> 4, path)
            self.item(kinds & 15, path)

    def item(self, kind: int, path: tuple[int, ...]) -> None:
        """Copy a value that is not in a field of its own: there, truth values take a byte."""
        if kind in (_TRUE, _FALSE):
            self.byte()
        else:
            self.value(kind, path)
