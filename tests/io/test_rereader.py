"""Items are found by number in any order, and ascending ones are read once."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from xstream.io.rereader import Rereader


@given(numbers=st.lists(st.integers(0, 99), max_size=60))
def test_each_item_is_the_one_of_its_number(numbers: list[int]) -> None:
    squares = Rereader(lambda: (n * n for n in range(100)))
    assert [squares.item(number) for number in numbers] == [number**2 for number in numbers]


def test_ascending_streams_of_numbers_read_the_file_once_each() -> None:
    readings = []

    def read() -> Iterator[int]:
        def items() -> Iterator[int]:
            readings.append(0)  # when the first item is read
            yield from range(1000)

        return items()

    file = Rereader(read)
    for number in range(0, 400, 2):
        assert file.item(500 + number) == 500 + number
        assert file.item(number) == number
    assert len(readings) == 2
