"""A transport over pyreqwest, the binding of Rust's reqwest.

It needs half the CPU time of aiohttp.
"""

from __future__ import annotations

import asyncio
import atexit
import ssl
import time
from collections.abc import Coroutine, Generator, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from types import coroutine
from typing import Any

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import ClientClosedError, RequestError
from pyreqwest.proxy import ProxyBuilder
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response as Answer

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.runtime.concurrency import RequestSlots
from asynccommit.stores.http.base import (
    HttpSettings,
    NoAnswerError,
    NotSentError,
    Proxies,
    Response,
    TooLargeError,
    TransportError,
    UntrustedError,
    check_url,
    place,
)

_new = tuple.__new__  # half the time of Response(...)


class PyreqwestTransport:
    """A transport over one client of pyreqwest."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._client: Client | None = _client(settings)
        # Not the client's own bound: what waits there would still be sent after it was cancelled.
        self._free = RequestSlots(settings.connections)
        self._abandoned: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"PyreqwestTransport({self._settings!r})"

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        check_url(url)
        if not self._free.take():
            await self._turn(method, url)
        try:
            request = self._request(method, url, headers, body)
            begun = asyncio.get_running_loop().time()
            try:
                answer = await self._opened(request)
                length = "0" if method == "HEAD" else _header(answer, "content-length")
                read = b"" if length == "0" else await _read(request, answer, length, limit)
                return _new(Response, (answer.status, _Headers(answer), read))
            except (RequestError, _PyreqwestLargeError) as error:
                seconds = asyncio.get_running_loop().time() - begun
                failure = self._failure(error, f"{method} {place(url)}", seconds)
            raise failure  # outside, so that no error of pyreqwest with the query hangs on it
        finally:
            self._free.release()

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if self._abandoned:  # no waiting request is sent after this
            await asyncio.wait(self._abandoned, timeout=self._settings.connect_timeout)
        if client is not None:
            await client.close()
        if self._abandoned:
            await asyncio.wait(self._abandoned)

    async def _turn(self, method: str, url: str) -> None:
        """Wait until one more connection may be used."""
        seconds = self._settings.connect_timeout
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._free.wait()
                return
        raise NotSentError(f"{method} {place(url)}: no connection within {seconds:g} s")

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> StreamRequest:
        if self._client is None:
            raise NotSentError(f"{method} {place(url)}: the transport is closed")
        if not body and method not in ("GET", "HEAD"):
            headers = {**headers, "content-length": "0"}  # left out otherwise; stores ask for it
        try:
            request = self._client.request(method, url).headers(headers)
            if body:
                request.body_bytes(body)
            return request.build_streamed()
        except ValueError:  # its text has the header's value
            pass
        raise ValueError(f"{method} {place(url)}: cannot be sent unchanged")

    @coroutine
    def _opened(self, request: StreamRequest) -> Generator[Any, None, Answer]:
        """Wait for the beginning of an answer.

        If cancelled, pyreqwest 0.15 lets its own task run on unobserved: the request may be sent
        much later. So it is not cancelled, and ``aclose`` waits for its end.
        """
        opening: Coroutine[Any, None, Answer] = request.__aenter__()
        while True:
            try:
                waiter = opening.send(None)
            except StopIteration as done:
                answer: Answer = done.value
                return answer
            try:
                yield waiter
            except asyncio.CancelledError:
                self._abandon(request, opening)
                raise

    def _abandon(self, request: StreamRequest, opening: Coroutine[Any, None, Answer]) -> None:
        task = asyncio.get_running_loop().create_task(_finish(request, opening))
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)

    def _failure(self, error: Exception, what: str, seconds: float) -> TransportError:
        """Translate an error of pyreqwest by its causes.

        In pyreqwest 0.15 the types of errors mislead: a ``ConnectError`` can also be a connection
        that was cut, and a ``ConnectTimeoutError`` can also be a response that took too long; only
        the cause shows that there was no connection.
        """
        settings = self._settings
        if isinstance(error, _PyreqwestLargeError):
            return TooLargeError(f"{what}: the response is larger than {error} bytes")
        if isinstance(error, ClientClosedError):
            return NoAnswerError(f"{what}: the transport was closed")
        causes = _causes(error)
        if "client error (Connect)" in causes:
            return _not_connected(causes[-1], what, settings)
        if isinstance(error, TimeoutError):
            if seconds >= settings.total_timeout:
                return NoAnswerError(f"{what}: not finished within {settings.total_timeout:g} s")
            return NoAnswerError(f"{what}: no response for {settings.read_timeout:g} s")
        return NoAnswerError(f"{what}: incomplete answer: {causes[-1]}")


class _PyreqwestLargeError(Exception):
    """The response is larger than the limit, which is its argument."""


async def _finish(request: StreamRequest, opening: Coroutine[Any, None, Answer]) -> None:
    with suppress(RequestError):
        await opening
        await request.__aexit__(None, None, None)


class _Headers(Mapping[str, str]):
    """The headers of a response, read on demand: a rename reads one of ten.

    One that is not ASCII is not there.
    """

    __slots__ = ("_answer",)

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __repr__(self) -> str:
        return repr(dict(self))

    def __getitem__(self, name: str) -> str:
        value = _header(self._answer, name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        try:
            return self._answer.get_header(name) is not None  # type: ignore[arg-type]
        except ValueError:
            return False

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys(self._answer.headers)
        return iter([name for name in names if name in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _header(answer: Answer, name: str) -> str | None:
    try:
        return answer.get_header(name)
    except ValueError:
        return None


async def _read(request: StreamRequest, answer: Answer, length: str | None, limit: int) -> bytes:
    try:
        if length is None:
            return await _collect(answer, limit)
        if int(length) > limit:
            raise _PyreqwestLargeError(limit)
        return (await answer.bytes()).to_bytes()
    except BaseException:
        await request.__aexit__(None, None, None)  # only this ends an unread body
        raise


async def _collect(answer: Answer, limit: int) -> bytes:
    pieces = []
    size = 0
    reader = answer.body_reader
    while (piece := await reader.read_chunk()) is not None:
        size += len(piece)
        if size > limit:
            raise _PyreqwestLargeError(limit)
        pieces.append(piece)
    return b"".join(pieces)


def _client(settings: HttpSettings) -> Client:
    builder = (
        ClientBuilder()
        .default_headers(settings.default_headers())
        .pool_max_idle_per_host(settings.connections)
        .pool_idle_timeout(timedelta(seconds=settings.keep_alive))
        .connect_timeout(timedelta(seconds=settings.connect_timeout))
        .read_timeout(timedelta(seconds=settings.read_timeout))
        .timeout(timedelta(seconds=settings.total_timeout))
        .follow_redirects(False)
        .referer(False)
        .gzip(False)
        .brotli(False)
        .zstd(False)
        .deflate(False)
        .no_proxy()
    )
    if proxies := Proxies(settings.proxy):
        builder.proxy(ProxyBuilder.custom(lambda url: proxies(str(url))))
    for certificate in _certificates(settings.ca_file):
        builder.add_root_certificate_der(certificate)
    try:
        client = builder.build()
        _end_gently()
        return client
    except RuntimeError as error:  # its thread is another process's
        raise UnsupportedError(f"pyreqwest cannot start: {error}") from error


@cache
def _end_gently() -> None:
    """Give its thread a moment when the process ends.

    The thread of pyreqwest 0.15 aborts the process if it still gives the interpreter's lock back
    while the interpreter ends: seen in one of five runs that end right after a request.
    """
    atexit.register(time.sleep, 0.05)


def _certificates(ca_file: str | None) -> list[bytes]:
    if ca_file is None:
        return []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise OptionError(f"ca_file {ca_file}: {error.strerror or error}") from error
    return context.get_ca_certs(binary_form=True)


def _not_connected(reason: str, what: str, settings: HttpSettings) -> NotSentError:
    if "peer certificate" in reason:
        return UntrustedError(f"{what}: certificate not trusted: {reason}")
    if reason == "operation timed out":
        return NotSentError(f"{what}: no connection within {settings.connect_timeout:g} s")
    return NotSentError(f"{what}: cannot connect: {reason}")


def _causes(error: Exception) -> list[str]:
    """Return pyreqwest's message without its first cause, which has the URL."""
    causes = (error.details["causes"] or ()) if isinstance(error, RequestError) else ()
    return [cause["message"] for cause in causes if "://" not in cause["message"]] or ["unknown"]
