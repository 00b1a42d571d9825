"""Requests sent by aiohttp."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache
from io import BytesIO

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientHandlerType,
    ClientHttpProxyError,
    ClientPayloadError,
    ClientRequest,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    ServerTimeoutError,
    TCPConnector,
    ThreadedResolver,
)
from yarl import URL

from asynccommit.errors import OptionError
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

_LARGE = 1 << 20  # bytes that aiohttp takes at once without a warning


class _CutError(Exception):
    """The connection was lost after it was given to a request."""


class _AiohttpLargeError(Exception):
    """The response is larger than the limit, which is its argument."""


FAILURES = (TimeoutError, ClientError, OSError, _CutError, _AiohttpLargeError)
"""The exceptions that ``failure_of`` translates."""


class AiohttpTransport:
    """A transport over one aiohttp session, opened by the first request."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._proxies = Proxies(settings.proxy)
        self._tls = tls_context(settings.ca_file)
        self._session: ClientSession | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"AiohttpTransport({self._settings!r})"

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        check_url(url)
        if self._closed:
            raise NotSentError(f"{method} {place(url)}: the transport is closed")
        session = self._session or self._open()
        try:
            answer = await session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=body_of(body),
                allow_redirects=False,
                proxy=self._proxies(url) if self._proxies else None,
            )
            return await read_response(answer, limit)
        except FAILURES as error:
            failure: Exception = failure_of(error, self._settings, f"{method} {place(url)}")
        except ValueError:
            failure = ValueError(f"{method} {place(url)}: cannot be sent unchanged")
        raise failure  # outside, so that no error of the library with the query hangs on it

    async def aclose(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    def _open(self) -> ClientSession:
        self._session = open_session(self._settings, self._tls)
        return self._session


def open_session(settings: HttpSettings, tls: ssl.SSLContext) -> ClientSession:
    """Open a session that sends each request once, on the running loop."""
    return ClientSession(
        connector=TCPConnector(
            limit=settings.connections,
            ssl=tls,
            keepalive_timeout=settings.keep_alive,
            resolver=ThreadedResolver(),
        ),
        timeout=timeout_of(settings),
        headers=settings.default_headers(),
        skip_auto_headers=("Content-Type",),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        middlewares=(_once,),
    )


def timeout_of(settings: HttpSettings) -> ClientTimeout:
    """Return the timeouts of one request."""
    return ClientTimeout(
        total=settings.total_timeout,
        connect=settings.connect_timeout,
        sock_read=settings.read_timeout,
    )


def body_of(body: bytes) -> BytesIO | bytes | None:
    """Return the body of a request as aiohttp takes it."""
    return BytesIO(body) if len(body) > _LARGE else body or None


async def read_response(answer: ClientResponse, limit: int) -> Response:
    """Read a response; see ``Transport.send`` for ``limit``."""
    try:
        data = await _read(answer, limit)
    except BaseException:
        answer.close()
        raise
    return Response(answer.status, lower_headers(answer.headers), data)


def failure_of(error: Exception, settings: HttpSettings, what: str) -> TransportError:
    """Translate one of ``FAILURES``; ``what`` is the request in messages."""
    match error:
        case ConnectionTimeoutError():
            return NotSentError(f"{what}: no connection within {settings.connect_timeout:g} s")
        case ClientConnectorCertificateError():
            reason = _reason(error.certificate_error)
            return UntrustedError(f"{what}: certificate not trusted: {reason}")
        case ClientConnectorError():
            return NotSentError(f"{what}: cannot connect: {_reason(error.os_error)}")
        case ClientHttpProxyError():
            return NotSentError(f"{what}: the proxy answered {error.status}")
        case ServerTimeoutError():
            return NoAnswerError(f"{what}: no response for {settings.read_timeout:g} s")
        case TimeoutError():
            return NoAnswerError(f"{what}: not finished within {settings.total_timeout:g} s")
        case ClientResponseError():
            return NoAnswerError(f"{what}: the response is not HTTP")
        case ClientPayloadError():
            return NoAnswerError(f"{what}: the response is incomplete")
        case _AiohttpLargeError():
            return TooLargeError(f"{what}: the response is larger than {error} bytes")
    return NoAnswerError(f"{what}: the connection was cut")


async def _once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Hide from the session that a connection was lost.

    The session would send GET, PUT and DELETE again then, and the first may have been done.
    """
    try:
        return await handler(request)
    except (TimeoutError, ClientConnectorError, ClientResponseError):
        raise
    except (ClientError, OSError):
        pass
    raise _CutError


async def _read(answer: ClientResponse, limit: int) -> bytes:
    length = answer.content_length
    if length is not None and (length <= limit or answer.method == "HEAD"):
        return await answer.read()
    if length is not None:
        raise _AiohttpLargeError(limit)
    pieces = []
    size = 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if size > limit:
            raise _AiohttpLargeError(limit)
        pieces.append(piece)
    return b"".join(pieces)


def lower_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by lower-case name; the first of several counts."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        found.setdefault(name.lower(), value)
    return found


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return the TLS settings. Raises ``OptionError`` for a bad ``ca_file``."""
    if ca_file is None:
        return _default_context()
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise OptionError(f"ca_file {ca_file}: {error.strerror or error}") from error
    return context


@cache
def _default_context() -> ssl.SSLContext:
    """Return the context of all transports without a ``ca_file``.

    To read the certificates of the system takes longer than all else that opens a store.
    """
    return ssl.create_default_context()


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return getattr(error, "strerror", None) or str(error)
