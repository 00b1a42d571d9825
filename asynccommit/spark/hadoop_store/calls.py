"""Calls to a filesystem of the JVM, many in one request of Py4J."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import orjson

from asynccommit.errors import RejectedError
from asynccommit.spark.hadoop_store.errors import translate, unanswered
from asynccommit.stores.hdfs.errors import HdfsRequest

_TIMEOUT = 900.0  # seconds; Hadoop's client gives up before, after its own attempts
_PATIENCE = 1000  # milliseconds that the JVM waits for the first result
_GONE = "the driver's JVM does not answer"

Waiting = tuple[HdfsRequest, "asyncio.Future[Any]"]


class FileCalls(Protocol):
    """The object that takes calls and gives results; see FileCalls.java."""

    def submit(self, turn: int, calls: bytes) -> None:
        """Begin calls; a turn that was submitted before does nothing."""
        ...

    def ended(self, turn: int, patience: int) -> str:
        """Return the results that are there, or wait for one."""
        ...


class JavaCalls:
    """Sends calls from one event loop and waits for their results.

    The calls that gather while one request of Py4J is under way go with the next one. Results are
    taken by a thread of their own, so that a slow call holds up none of the others.

    Args:
        connect: returns the other end; it may take a request.
    """

    def __init__(self, connect: Callable[[], FileCalls]) -> None:
        self._connect = connect
        self._calls: FileCalls | None = None
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="asynccommit-jvm")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: list[tuple[Any, ...]] = []
        self._waiting: dict[int, Waiting] = {}
        self._number = self._submitted = self._answered = 0
        self._sends = self._takes = False

    async def ask(self, request: HdfsRequest, name: str, *arguments: object) -> Any:
        """Return the result of one call.

        Raises ``StoreError``.
        """
        self._loop = loop = asyncio.get_running_loop()
        self._number += 1
        number, answer = self._number, loop.create_future()
        self._waiting[number] = request, answer
        self._next.append((number, name, *arguments))
        if not self._sends:
            self._sends = True
            loop.call_soon(self._send)
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await answer
        except TimeoutError as error:
            raise unanswered(request, "no response in time") from error
        finally:
            self._waiting.pop(number, None)

    async def aclose(self) -> None:
        """Let the threads end; a call under way is not waited for."""
        self._waiting.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self) -> None:
        """Hand over all calls that have gathered, in a thread."""
        loop, calls, self._next = self._running(), self._next, []
        try:
            text = orjson.dumps(calls)
        except orjson.JSONEncodeError:
            calls = [call for call in calls if self._is_text(call)]
            text = orjson.dumps(calls)
        self._submitted += 1
        sent = loop.run_in_executor(self._threads, self._submit, self._submitted, text)
        sent.add_done_callback(self._sent)

    def _submit(self, turn: int, text: bytes) -> None:
        if self._calls is None:
            self._calls = self._connect()
        self._calls.submit(turn, text)

    def _sent(self, sent: asyncio.Future[None]) -> None:
        self._sends = bool(self._next)
        if self._next:
            self._send()
        if sent.cancelled():
            return
        if (error := sent.exception()) is not None:
            self._fail(error)
        elif not self._takes:
            self._takes = True
            self._take()

    def _take(self) -> None:
        self._answered += 1
        taken = self._running().run_in_executor(self._threads, self._ended, self._answered)
        taken.add_done_callback(self._taken)

    def _ended(self, turn: int) -> str:
        assert self._calls is not None  # a submission has connected
        return self._calls.ended(turn, _PATIENCE)

    def _taken(self, taken: asyncio.Future[str]) -> None:
        if taken.cancelled():
            return
        if (error := taken.exception()) is not None:
            self._takes = False
            self._fail(error)
            return
        for result in orjson.loads(taken.result()):
            self._settle(result)
        self._takes = bool(self._waiting)
        if self._takes:
            self._take()

    def _settle(self, result: Sequence[Any]) -> None:
        request, answer = self._waiting.pop(result[0], (None, None))
        if request is None or answer is None or answer.done():
            return
        if len(result) == 2:
            answer.set_result(result[1])
        else:
            answer.set_exception(translate(request, str(result[2]), str(result[3])))

    def _is_text(self, call: tuple[Any, ...]) -> bool:
        """Return whether a call can be sent; a name that is no UTF-8 cannot."""
        try:
            orjson.dumps(call)
        except orjson.JSONEncodeError:
            request, answer = self._waiting[call[0]]
            answer.set_exception(
                RejectedError(request.op, request.path, "its name is not valid UTF-8")
            )
            return False
        return True

    def _fail(self, error: BaseException) -> None:
        """Fail all calls that wait: the JVM has died, or its gateway was closed."""
        for request, answer in list(self._waiting.values()):
            if not answer.done():
                answer.set_exception(unanswered(request, f"{_GONE} ({type(error).__name__})"))

    def _running(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop
