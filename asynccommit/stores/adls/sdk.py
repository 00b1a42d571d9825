"""Requests sent by the client of azure-storage-file-datalake.

Each request goes through the pipeline of a ``DataLakeServiceClient``: its policies, proxy,
credential, user agent and transport. Retries and redirects of the pipeline are switched off for
these requests, because the policies of a store repeat what is safe to repeat.

The client has no public method that sends a request of the caller's; ``_pipeline`` is where its own
methods send theirs, in every version 12.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.adls.credentials import AdlsAnonymous, AdlsCredential, Sas, SharedKey
from asynccommit.stores.adls.options import AzureSettings
from asynccommit.stores.adls.tokens import AzureTokens, IdentitySource
from asynccommit.stores.http.base import (
    HttpSettings,
    NoAnswerError,
    NotSentError,
    Proxies,
    Response,
    TooLargeError,
    Transport,
    check_url,
    is_loopback,
    place,
)
from asynccommit.stores.http.tokens import TokenError

try:
    from azure.core.credentials import AccessToken
    from azure.core.exceptions import AzureError, ClientAuthenticationError
    from azure.core.pipeline import AsyncPipeline
    from azure.core.pipeline.transport import AioHttpTransport
    from azure.core.rest import AsyncHttpResponse, HttpRequest
    from azure.storage.filedatalake.aio import DataLakeServiceClient

    from asynccommit.stores.http.with_aiohttp import (
        FAILURES,
        body_of,
        failure_of,
        lower_headers,
        open_session,
        tls_context,
    )
except ImportError as missing:
    raise UnsupportedError(
        "http_library is 'sdk', and azure-storage-file-datalake is not installed: "
        "pip install 'asynccommit[adls-sdk]'"
    ) from missing

_OPTIONS: Mapping[str, Any] = {
    "stream": True,  # the body is read here, up to its limit
    "permit_redirects": False,
    **dict.fromkeys(("retry_total", "retry_connect", "retry_read", "retry_status"), 0),
}


def open_sdk(settings: AzureSettings) -> tuple[AdlsCredential, Transport]:
    """Return the transport of the settings' client, and its credential.

    Without ``client`` in the settings, a client is made of all others.

    Raises:
        OptionError: ``client`` is not a client of asyncio.
    """
    given = settings.client
    if given is None:
        opener = _ClientOpener(settings)
        return ByPipeline(settings.credential), AzureSdkTransport(settings.http, opener=opener)
    if not isinstance(getattr(given, "_pipeline", None), AsyncPipeline):
        raise OptionError(
            f"client is a {type(given).__name__}: with http_library='sdk', expected a client of "
            "azure.storage.filedatalake.aio or azure.storage.blob.aio"
        )
    if settings.place.onelake and not hasattr(given.credential, "get_token"):
        raise OptionError(
            "client has no token credential, and OneLake takes only tokens of Entra ID here: make "
            "it with a credential of azure.identity.aio"
        )
    return ByPipeline(settings.credential, given), AzureSdkTransport(settings.http, given)


class ByPipeline(AdlsAnonymous):
    """A credential whose requests the pipeline of a client authorises.

    Only a SAS stays in the URLs made here, as renames need it in the source as well.

    Args:
        inner: the credential itself.
        client: the user's client, if its pipeline is used.
    """

    def __init__(self, inner: AdlsCredential, client: Any = None) -> None:
        super().__init__()
        self._inner = inner
        # The policy of a client adds its SAS unless the URL has it in the same spelling.
        signature = getattr(getattr(client, "credential", None), "signature", None)
        self.suffix = inner.suffix if signature is None else str(signature).lstrip("?")

    def hide(self, text: str) -> str:
        return self._inner.hide(text)

    async def aclose(self) -> None:
        await self._inner.aclose()


class AzureSdkTransport:
    """A transport over the pipeline of one client.

    Args:
        settings: timeouts; of a client made here also the rest.
        client: the user's client, which stays open.
        opener: makes a client for the first request, if there is none.
    """

    def __init__(
        self, settings: HttpSettings, client: Any = None, opener: _ClientOpener | None = None
    ) -> None:
        self._settings = settings
        self._client = client
        self._opener = opener
        self._opening = asyncio.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"AzureSdkTransport({self._settings!r})"

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        check_url(url)
        what = f"{method} {place(url)}"
        if self._closed:
            raise NotSentError(f"{what}: the transport is closed")
        if self._client is None:
            await self._open()
        sent = self._headers(headers) | ({"content-length": str(len(body))} if body else {})
        request = HttpRequest(method, url, headers=sent, content=body_of(body))
        try:
            async with asyncio.timeout(self._settings.total_timeout):
                return await self._exchange(request, limit)
        except (AzureError, *FAILURES) as error:
            failure: Exception = self._failure(error, what)
        except _TooMuchError:
            failure = TooLargeError(f"{what}: the response is larger than {limit} bytes")
        except ValueError:
            failure = ValueError(f"{what}: cannot be sent; is the client open?")
        raise failure  # outside, so that no error of the library with the query hangs on it

    async def aclose(self) -> None:
        self._closed = True
        if self._opener is not None and self._client is not None:
            await self._client.close()

    async def _open(self) -> None:
        async with self._opening:
            if self._client is None and self._opener is not None:
                client = await self._opener.open()
                self._client = client

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        sent = {"accept-encoding": "identity", **headers}
        if "range" in sent and hasattr(self._client.credential, "account_key"):
            sent["x-ms-range"] = sent.pop("range")  # the library does not sign the other one
        return sent

    async def _exchange(self, request: HttpRequest, limit: int) -> Response:
        answered = await self._client._pipeline.run(request, **self._options(request.url))
        answer = cast(AsyncHttpResponse, answered.http_response)
        try:
            headers = lower_headers(answer.headers)
            data = b"" if request.method == "HEAD" else await _read(answer, headers, limit)
            return Response(answer.status_code, headers, data)
        finally:
            await answer.close()

    def _options(self, url: str) -> dict[str, Any]:
        options = dict(_OPTIONS)
        local = is_loopback(url.partition("://")[2].partition("/")[0])
        if local and hasattr(self._client.credential, "get_token"):
            options["enforce_https"] = False
        if self._opener is not None and (proxy := self._opener.proxies(url)):
            options["proxy"] = proxy
        return options

    def _failure(self, error: Exception, what: str) -> Exception:
        inner = getattr(error, "inner_exception", None) or error
        if isinstance(inner, FAILURES):
            return failure_of(inner, self._settings, what)
        if isinstance(error.__cause__, ValueError):  # of a header that cannot be signed
            return ValueError(f"{what}: cannot be sent unchanged")
        if isinstance(error, ClientAuthenticationError):
            return TokenError(f"no token: {' '.join(str(error).split())}", again=False)
        return NoAnswerError(f"{what}: {type(error).__name__} of the client")


class _TooMuchError(Exception):
    """The response is larger than its limit."""


async def _read(answer: AsyncHttpResponse, headers: Mapping[str, str], limit: int) -> bytes:
    if int(headers.get("content-length", 0)) > limit:
        raise _TooMuchError
    pieces, size = [], 0
    async for piece in answer.iter_raw():
        size += len(piece)
        if size > limit:
            raise _TooMuchError
        pieces.append(piece)
    return b"".join(pieces)


class _ClientOpener:
    """Opens a client with the settings of a store.

    Attributes:
        proxies: the proxies for URLs.
    """

    def __init__(self, settings: AzureSettings) -> None:
        self._settings = settings
        self._tls = tls_context(settings.http.ca_file)
        self.proxies = Proxies(settings.http.proxy)

    async def open(self) -> DataLakeServiceClient:
        """Open a client on the running loop; its session sends each request once."""
        settings, http = self._settings, self._settings.http
        transport = AioHttpTransport(
            session=open_session(http, self._tls),
            connection_timeout=http.connect_timeout,
            read_timeout=http.read_timeout,
        )
        return await asyncio.to_thread(  # for the user agent it asks the system
            DataLakeServiceClient,
            f"https://{settings.place.origin.partition('://')[2]}",  # requests have their own URL
            _credential(settings),
            transport=transport,
            user_agent=http.user_agent,
        )


def _credential(settings: AzureSettings) -> Any:
    """Return the settings' credential as the library takes it."""
    credential = settings.credential
    if isinstance(credential, SharedKey):
        return {"account_name": settings.place.account, "account_key": credential.key}
    if isinstance(credential, AzureTokens):
        return _Tokens(credential.identity)
    assert isinstance(credential, Sas | AdlsAnonymous)  # a SAS is in the URLs already
    return None


class _Tokens:
    """A token credential of asyncio over a source of tokens."""

    def __init__(self, source: IdentitySource) -> None:
        self._source = source

    async def get_token(self, *scopes: str, **_: object) -> AccessToken:
        """Return a token; ``scopes`` are those of storage."""
        try:
            fresh = await self._source.ask()
        except Exception as error:  # of whatever library: the source tells them apart
            raise ClientAuthenticationError(self._source.explain(error).detail) from None
        return AccessToken(fresh.token, int(min(fresh.expires, 1e12)))

    async def close(self) -> None:
        """Do nothing: the credential of the store closes its source."""
