"""Requests sent by aiohttp."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
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


class AiohttpTransport:
    """A transport over one aiohttp session, opened by the first request."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._proxies = Proxies(settings.proxy)
        self._tls = _tls(settings.ca_file)
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
                data=BytesIO(body) if len(body) > _LARGE else body or None,
                allow_redirects=False,
                proxy=self._proxies(url) if self._proxies else None,
            )
            try:
                data = await _read(answer, limit)
            except BaseException:
                answer.close()
                raise
            return Response(answer.status, _headers(answer), data)
        except (TimeoutError, ClientError, OSError, _CutError, _AiohttpLargeError) as error:
            failure: Exception = self._failure(error, f"{method} {place(url)}")
        except ValueError:
            failure = ValueError(f"{method} {place(url)}: cannot be sent unchanged")
        raise failure  # outside, so that no error of the library with the query hangs on it

    async def aclose(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    def _open(self) -> ClientSession:
        settings = self._settings
        self._session = ClientSession(
            connector=TCPConnector(
                limit=settings.connections,
                ssl=self._tls,
                keepalive_timeout=settings.keep_alive,
                resolver=ThreadedResolver(),
            ),
            timeout=ClientTimeout(
                total=settings.total_timeout,
                connect=settings.connect_timeout,
                sock_read=settings.read_timeout,
            ),
            headers=settings.default_headers(),
            skip_auto_headers=("Content-Type",),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            middlewares=(_once,),
        )
        return self._session

    def _failure(self, error: Exception, what: str) -> TransportError:
        settings = self._settings
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


class _CutError(Exception):
    """The connection was lost after it was given to a request."""


class _AiohttpLargeError(Exception):
    """The response is larger than the limit, which is its argument."""


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


def _headers(answer: ClientResponse) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in answer.headers.items():
        found.setdefault(name.lower(), value)
    return found


def _tls(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            raise OptionError(f"ca_file {ca_file}: {error.strerror or error}") from error
    return context


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return getattr(error, "strerror", None) or str(error)
