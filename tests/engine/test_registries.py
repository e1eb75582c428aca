"""Ctrl-C while numba reads its registries leaves them usable."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from numba import njit
from numba.core.registry import cpu_target

from xstream.kernels._registries import uninterrupted


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    # A shell that starts tests in the background leaves SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_for_the_end_of_a_refresh() -> None:
    done = []

    def refresh(context: str) -> None:
        signal.raise_signal(signal.SIGINT)
        done.append(context)

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(refresh)("context")
    assert done == ["context"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_numba_compiles_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    context = cpu_target.typing_context
    load, pressed = type(context).load_additional_registries, []

    def press(self: object) -> None:
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        load(self)

    monkeypatch.setattr(type(context), "load_additional_registries", press)
    with pytest.raises(KeyboardInterrupt):
        njit(lambda x: x + 1)(1)
    assert pressed
    assert njit(lambda x: x + 2)(1) == 3
