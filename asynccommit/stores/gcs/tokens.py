"""Bearer tokens for Google Cloud Storage.

They come from gcloud-aio-auth, or from a credentials object of google-auth.

Both send through a transport of this package, so that certificates, proxies and timeouts are those
of the store. Each request is sent once: the caller that needs a token retries.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import AbstractEventLoop, run_coroutine_threadsafe
from collections.abc import Callable, Mapping
from datetime import UTC
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from asynccommit.errors import AsyncCommitError
from asynccommit.stores.gcs.identity import GoogleAccount, Raw
from asynccommit.stores.http.base import (
    Response,
    TooLargeError,
    Transport,
    TransportError,
    UntrustedError,
)
from asynccommit.stores.http.tokens import Fresh, Holder, TokenError

_LIMIT = 1 << 16  # bytes of an answer with a token
_SECONDS = 30  # for one request; the transport has its own bound
_PASSING = frozenset({408, 425, 429})
_AGAIN = {
    "service_account": "is its key deleted or disabled, or this machine's clock wrong?",
    "authorized_user": "run gcloud auth application-default login again",
    "external_account": "does the pool's provider accept this subject?",
    "metadata": "does this machine have a service account?",
}


_KINDS = {
    "service_account": "the service account",
    "authorized_user": "the user's login",
    "external_account": "the external account (workload identity)",
    "metadata": "this machine's service account",
}


class RefusedError(Exception):
    """Raised when the token server rejected a request.

    ``status`` is the HTTP status, ``said`` the reason.
    """

    def __init__(self, server: str, status: int, detail: str) -> None:
        super().__init__(f"{server} answered {status}{': ' if detail else ''}{detail}")
        self.status = status


class TokenResponse:
    """The part of an answer of aiohttp that gcloud-aio-auth reads."""

    def __init__(self, server: str, body: bytes) -> None:
        self._server = server
        self._body = body

    async def json(self) -> Any:
        """Parse the body as JSON. Raises ``RefusedError`` if it is invalid."""
        try:
            return orjson.loads(self._body)
        except ValueError:
            pass  # its text may have a token
        raise RefusedError(self._server, 200, "it is not JSON")

    async def text(self) -> str:
        """Return the body, without space around it."""
        return self._body.decode(errors="replace").strip()


class GcloudSession:
    """An HTTP session for gcloud-aio-auth that sends through our transport.

    Args:
        transport: sends the requests.
        metadata: whether only a metadata server is trusted.
    """

    def __init__(self, transport: Transport, *, metadata: bool = False) -> None:
        self._transport = transport
        self._metadata = metadata

    async def post(
        self, url: str, headers: Mapping[str, str], data: str = "", **_: object
    ) -> TokenResponse:
        """Send ``data``. Raises ``RefusedError`` and what a transport raises."""
        return self._answer(url, await self._send("POST", url, headers, data.encode()))

    async def get(
        self, url: str, headers: Mapping[str, str] | None = None, **_: object
    ) -> TokenResponse:
        """Ask for ``url``, which may be ``file:`` and a path."""
        if url.startswith("file:"):
            path = url.removeprefix("file:")
            return TokenResponse(path, await asyncio.to_thread(_read, path))
        answer = await self._send("GET", url, headers or {}, b"")
        if self._metadata and answer.headers.get("metadata-flavor") != "Google":
            raise RefusedError(_server(url), answer.status, "the server is not a metadata server")
        return self._answer(url, answer)

    async def _send(self, verb: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        lowered = {name.lower(): value for name, value in headers.items()}
        return await self._transport.send(verb, url, lowered, body, limit=_LIMIT)

    def _answer(self, url: str, answer: Response) -> TokenResponse:
        if answer.status != 200:
            raise RefusedError(_server(url), answer.status, _said(answer.body))
        return TokenResponse(_server(url), answer.body)


class GcloudSource:
    """A source of tokens from gcloud-aio-auth.

    Args:
        load: finds the identity; called in a thread, because it reads files.
        open_transport: opens a transport; ``True`` if only this machine's network is used.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        load: Callable[[], GoogleAccount | Raw],
        open_transport: Callable[[bool], Transport],
        now: Callable[[], float],
    ) -> None:
        self._load = load
        self._open = open_transport
        self._now = now
        self._found: GoogleAccount | Raw | None = None
        self._transport: Transport | None = None
        self._token: Any = None

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._found.secrets if self._found is not None else ()

    @property
    def holder(self) -> Holder:
        if isinstance(self._found, GoogleAccount):
            return Holder(_KINDS[self._found.kind], _AGAIN[self._found.kind])
        return Holder("the given text (option token)", "it cannot be renewed, give a new one")

    async def ask(self) -> Fresh:
        if self._token is None:
            self._token = await asyncio.to_thread(self._make)
        if isinstance(self._found, Raw):
            return Fresh(self._found.token, math.inf)
        begun = self._now()
        given = await self._token.refresh(timeout=_SECONDS)
        return Fresh(given.value, begun + given.expires_in)

    def explain(self, error: Exception) -> TokenError:
        found = self._found
        if not isinstance(found, GoogleAccount):
            return explain_failure(error, "token")
        if found.last_resort and isinstance(error, TransportError | TimeoutError):
            return TokenError(found.last_resort, again=False)
        return explain_failure(error, found.where, _AGAIN[found.kind])

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    def _make(self) -> Any:
        self._found = found = self._load()
        if isinstance(found, Raw):
            return found
        metadata = found.kind == "metadata"
        self._transport = self._open(metadata)
        token = import_module("gcloud.aio.auth").Token(
            found.file(),
            scopes=[found.scope],
            target_principal=found.principal or None,
            delegates=list(found.delegates) or None,
        )
        token.session = GcloudSession(self._transport, metadata=metadata)
        token.token_uri = found.token_url or token.token_uri
        return token


class ObjectSource:
    """Tokens of a credentials object of google-auth, called in a thread.

    Args:
        given: the object; it is the user's, and may be in use elsewhere.
        scope: for an object that has none yet.
        open_transport: as for ``GcloudSource``.
    """

    def __init__(self, given: Any, scope: str, open_transport: Callable[[bool], Transport]) -> None:
        self._given = given
        self._scope = scope
        self._open = open_transport
        self._transport: Transport | None = None
        self._last = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        names = ("token", "refresh_token", "client_secret", "id_token")
        found = (getattr(self._given, name, None) for name in names)
        return tuple(value for value in found if isinstance(value, str))

    @property
    def holder(self) -> Holder:
        kind = f"the credentials object {type(self._given).__name__}"
        return Holder(kind, "is it still valid, and does it have a scope for Cloud Storage?")

    async def ask(self) -> Fresh:
        return await asyncio.to_thread(self._ask, asyncio.get_running_loop())

    def explain(self, error: Exception) -> TokenError:
        return explain_failure(error, type(self._given).__name__)

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    def _ask(self, loop: AbstractEventLoop) -> Fresh:
        given = self._given
        if getattr(given, "requires_scopes", False):
            given = self._given = given.with_scopes([self._scope])
        # One that was renewed elsewhere is as good.
        if not given.valid or given.token == self._last:
            if self._transport is None:
                self._transport = self._open(False)
            given.refresh(_Bridge(self._transport, loop))
        if not isinstance(given.token, str):
            raise TypeError("a credentials object without a token")
        self._last = given.token
        expiry = given.expiry
        expires = math.inf if expiry is None else expiry.replace(tzinfo=UTC).timestamp()
        return Fresh(given.token, expires)


class _Given(NamedTuple):
    """An answer as google-auth reads it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class _Bridge:
    """A transport for google-auth that sends on the event loop and blocks google-auth's thread."""

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> _Given:
        data = body.encode() if isinstance(body, str) else body or b""
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        sending = self._transport.send(method, url, lowered, data, limit=_LIMIT)
        try:
            answer = run_coroutine_threadsafe(sending, self._loop).result(2 * _SECONDS)
        except TransportError as error:
            failure = error.detail
        else:
            return _Given(answer.status, answer.headers, answer.body)
        raise import_module("google.auth.exceptions").TransportError(failure)


def explain_failure(error: Exception, where: str, remedy: str = "") -> TokenError:
    """Explain why there is no token, without text that may hold a secret."""
    start = f"no access token from {where}: "
    match error:
        case AsyncCommitError():
            return TokenError(str(error), again=False)
        case TransportError():
            final = isinstance(error, UntrustedError | TooLargeError)
            return TokenError(start + error.detail, again=not final)
        case RefusedError():
            again = error.status in _PASSING or error.status >= 500
            tail = f"; {remedy}" if remedy and not again else ""
            return TokenError(f"{start}{error}{tail}", again=again)
        case TimeoutError():
            return TokenError(f"{start}no response in time", again=True)
        case OSError():
            return TokenError(f"{start}{error.strerror}: {error.filename}", again=False)
        case KeyError():
            return TokenError(f"{start}the response has no token", again=False)
    if type(error).__module__.startswith("google."):
        return _explain_googles(error, start)
    what = type(error).__name__
    return TokenError(f"{start}{what}; are the credentials complete?", again=False)


def _explain_googles(error: Exception, start: str) -> TokenError:
    detail = " ".join(str(error.args[0] if error.args else error).split())
    names = {kind.__name__ for kind in type(error).__mro__}
    again = bool(getattr(error, "retryable", False)) or "TransportError" in names
    return TokenError(start + detail, again=again)


def _said(body: bytes) -> str:
    """Return the message of an identity service or metadata server."""
    try:
        found = orjson.loads(body)
        error = found["error"]
        if isinstance(error, dict):
            parts = [error.get("status"), error.get("message")]
        else:
            parts = [error, found.get("error_description")]
    except (ValueError, LookupError, TypeError, AttributeError):
        return " ".join(body.decode(errors="replace").split()) if body[:1] != b"<" else ""
    return ": ".join(" ".join(str(part).split()) for part in parts if part)


def _server(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_LIMIT)
