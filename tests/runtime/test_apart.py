"""Functions that may block: called apart, in order, and ended before their caller."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from asynccommit.runtime.apart import PATIENCE, Apart, Listener, OnLoop, apart

NAME = ContextVar("NAME", default="")


class Gate:
    """A function that keeps what it is called with, and waits while it is shut."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.opened = threading.Event()

    def __call__(self, value: int) -> None:
        """Keep ``value``."""
        self.heard.append(value)
        assert self.opened.wait(30)


def test_a_quick_function_has_ended_when_the_call_returns() -> None:
    """Its calls are in order, in another thread, with the caller's context."""
    heard: list[tuple[int, str, bool]] = []
    main = threading.get_ident()
    NAME.set("caller")
    told = Apart[int](
        lambda value: heard.append((value, NAME.get(), threading.get_ident() == main))
    )
    for value in range(3):
        told(value)

    assert heard == [(0, "caller", False), (1, "caller", False), (2, "caller", False)]
    assert not told.is_busy


async def test_a_function_that_blocks_is_not_waited_for() -> None:
    """Values that come meanwhile are one: the last of them, which is heard before the end."""
    gate = Gate()
    told = Apart(gate, patience=0.01)
    for value in range(5):
        told(value)
    assert gate.heard == [0]
    assert told.is_busy

    ending = asyncio.ensure_future(told.end())
    await asyncio.sleep(0.1)
    assert not ending.done()
    gate.opened.set()
    await ending
    assert gate.heard == [0, 4]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_it_raises_is_raised_by_the_call(error: type[BaseException]) -> None:
    """An interrupt too."""

    def fail(value: int) -> None:
        raise error(value)

    told = Apart(fail)
    with pytest.raises(error, match="1"):
        told(1)


async def test_what_it_raises_late_is_raised_by_the_end() -> None:
    """No value that came meanwhile is passed on."""
    begun, heard = threading.Event(), list[int]()

    def fail(value: int) -> None:
        heard.append(value)
        assert begun.wait(30)
        raise ValueError(value)

    told = Apart(fail, patience=0.01)
    told(1)
    told(2)
    begun.set()
    with pytest.raises(ValueError, match="1"):
        await told.end()
    assert heard == [1]


def test_without_threads_it_is_called_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that ends starts no thread: nothing is lost."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    heard: list[int] = []
    Apart(heard.append)(1)
    assert heard == [1]


async def test_functions_of_this_package_are_called_directly() -> None:
    """They block nothing, so no thread is started for them."""
    threads: list[int] = []
    own = OnLoop[int](lambda value: threads.append(threading.get_ident()))
    told = apart(own)
    assert told is own
    told(1)
    await told.end()
    assert threads == [threading.get_ident()]
    assert apart(None) is None


async def test_a_listener_that_fails_is_told_nothing_more() -> None:
    """Its first exception, at a call or at the end, is passed on and ends nothing else."""
    for patience in (PATIENCE, 0.0):
        begun, heard, failures = threading.Event(), list[int](), list[Exception]()

        def fail(value: int, heard: list[int] = heard, begun: threading.Event = begun) -> None:
            heard.append(value)
            assert begun.wait(30)
            raise ValueError(value)

        listener = Listener[int](Apart(fail, patience), failures.append)
        if patience:
            begun.set()
        listener(1)
        begun.set()
        await listener.end()
        listener(2)

        assert (heard, [str(each) for each in failures]) == ([1], ["1"])
        assert not listener.listens


async def test_a_listener_of_nothing_does_not_listen() -> None:
    """A commit without a callback tells nobody."""
    listener = Listener[int](None, lambda error: pytest.fail(str(error)))
    listener(1)
    await listener.end()

    assert (listener.listens, listener.is_busy) == (False, False)
