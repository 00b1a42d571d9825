"""The engine's end of the way to the JVM that has started it.

The frames go over descriptors that nothing else in this process has. At the end of its input the
process ends at once, as by a kill: the JVM has died, and somebody may run its jobs again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any, BinaryIO

import orjson

from asynccommit.spark.frames import Frame, FrameError, FrameKind, read_frame

GONE = 75
"""The exit code after the end of the input (``EX_TEMPFAIL``)."""


class JvmError(OSError):
    """Raised when the JVM does not do what it was asked for."""


class Channel:
    """Answers the JVM's requests, each in a thread, and asks the JVM.

    Args:
        reading: the frames of the JVM.
        writing: the descriptor to which frames are written.
        answer: answers a request; it may be called many times at once.
    """

    def __init__(self, reading: BinaryIO, writing: int, answer: Callable[[str], str]) -> None:
        self._reading = reading
        self._writing = writing
        self._answer = answer
        self._write = threading.Lock()
        self._numbers = count(1)
        self._waiting: dict[int, Future[bytes]] = {}
        self._state = threading.Condition()
        self._running = 0
        self._bye = False

    def begin(self, greeting: Mapping[str, Any]) -> None:
        """Send the greeting, then answer requests in threads."""
        self._send(Frame(FrameKind.HELLO, 0, orjson.dumps(greeting)))
        threading.Thread(target=self._serve, name="asynccommit-channel", daemon=True).start()

    def wait(self) -> None:
        """Wait until the JVM ends in order, and no request is under way."""
        with self._state:
            self._state.wait_for(lambda: self._bye and not self._running)

    def ask(self, **request: Any) -> bytes:
        """Return the JVM's answer.

        Raises ``JvmError``.
        """
        number, answer = next(self._numbers), Future[bytes]()
        self._waiting[number] = answer
        try:
            self._send(Frame(FrameKind.REQUEST, number, orjson.dumps(request)))
            return answer.result()
        except FrameError as error:
            raise JvmError(str(error)) from error
        finally:
            self._waiting.pop(number, None)

    def _send(self, frame: Frame) -> None:
        text = memoryview(frame.encode())
        with self._write:
            while text:
                text = text[os.write(self._writing, text) :]

    def _serve(self) -> None:
        why = "its input has ended, so the JVM has"
        try:
            while (frame := read_frame(self._reading.read)) is not None:
                self._take(frame)
        except FrameError as error:
            why = f"the JVM has sent {error}"
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"
        _end(why)

    def _take(self, frame: Frame) -> None:
        if frame.kind is FrameKind.REQUEST:
            with self._state:
                self._running += 1
            threading.Thread(target=self._reply, args=(frame,), daemon=True).start()
        elif frame.kind is FrameKind.BYE:
            with self._state:
                self._bye = True
                self._state.notify_all()
        elif answer := self._waiting.get(frame.number):
            if frame.kind is FrameKind.ANSWER:
                answer.set_result(frame.text)
            else:
                answer.set_exception(JvmError(frame.text.decode(errors="replace")))

    def _reply(self, frame: Frame) -> None:
        try:
            text = self._answer(frame.text.decode())
            self._send(Frame(FrameKind.ANSWER, frame.number, text.encode()))
        except BaseException as error:  # the JVM would wait for ever
            _end(f"a request was not answered: {type(error).__name__}: {error}")
        finally:
            with self._state:
                self._running -= 1
                self._state.notify_all()


def _end(why: str) -> None:
    """End this process at once."""
    with suppress(OSError):
        os.write(2, f"WARNING asynccommit: the engine ends: {why}\n".encode())
    os._exit(GONE)


class JvmFiles:
    """The filesystems of the JVM at the other end; see ChildCalls.java."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stores = count(1)

    def has(self, name: str) -> bool:
        """Return whether a job has opened a filesystem."""
        return bool(orjson.loads(self._channel.ask(what="has", name=name)))

    def facts(self, name: str) -> str:
        """Return the facts about an open filesystem as JSON."""
        return self._channel.ask(what="facts", name=name).decode()

    def open(self, url: str) -> None:
        """Open a filesystem as the application does."""
        self._channel.ask(what="open", name=url)

    def calls(self, name: str) -> JvmCalls:
        """Return what takes calls to a filesystem."""
        return JvmCalls(self._channel, {"store": next(self._stores), "name": name})


class JvmCalls:
    """Calls to one filesystem; see ``FileCalls``."""

    def __init__(self, channel: Channel, store: Mapping[str, Any]) -> None:
        self._channel = channel
        self._store = store

    def submit(self, turn: int, calls: bytes) -> None:
        """Begin calls."""
        self._channel.ask(what="submit", turn=turn, calls=orjson.Fragment(calls), **self._store)

    def ended(self, turn: int, patience: int) -> str:
        """Return the results that are there, or wait for one."""
        told = self._channel.ask(what="ended", turn=turn, patience=patience, **self._store)
        return told.decode()
