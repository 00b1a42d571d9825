"""Transports over the session of gcloud-aio-storage, which is aiohttp's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from yarl import URL

from asynccommit.errors import UnsupportedError
from asynccommit.stores.gcs.tokens import explain_failure
from asynccommit.stores.http.base import (
    HttpSettings,
    NotSentError,
    Proxies,
    Response,
    check_url,
    place,
)

try:
    from asynccommit.stores.http.with_aiohttp import (
        FAILURES,
        body_of,
        failure_of,
        open_session,
        read_response,
        timeout_of,
        tls_context,
    )

    _is_there = find_spec("gcloud.aio.auth") is not None
except ImportError:
    _is_there = False
if not _is_there:
    raise UnsupportedError(
        "http_library is 'sdk', and gcloud-aio-storage is not installed: "
        "pip install 'asynccommit[gcs-sdk]'"
    )


class ClientSessionTransport:
    """A transport over the session and the token of a user's client.

    Args:
        settings: timeouts.
        client: the user's client, which stays open.
    """

    def __init__(self, settings: HttpSettings, client: Any = None) -> None:
        self._settings = settings
        self._client = client
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings!r})"

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        check_url(url)
        what = f"{method} {place(url)}"
        if self._closed:
            raise NotSentError(f"{what}: the transport is closed")
        sent = await self._authorised({"accept-encoding": "identity", **headers})
        try:
            answer = await (await self._session()).request(
                method,
                URL(url, encoded=True),
                sent,
                auto_raise_for_status=False,
                data=body_of(body),
                allow_redirects=False,
                auto_decompress=False,
                timeout=timeout_of(self._settings),
                skip_auto_headers=("Content-Type",),
                **self._more(url),
            )
            return await read_response(answer, limit)
        except FAILURES as error:
            failure: Exception = failure_of(error, self._settings, what)
        except ValueError:
            failure = ValueError(f"{what}: cannot be sent unchanged")
        except RuntimeError:
            failure = NotSentError(f"{what}: the session of the client is closed")
        raise failure  # outside, so that no error of the library with the query hangs on it

    async def aclose(self) -> None:
        self._closed = True

    async def _session(self) -> Any:
        return self._client.session

    def _more(self, url: str) -> dict[str, Any]:
        return {}

    async def _authorised(self, headers: dict[str, str]) -> dict[str, str]:
        if getattr(self._client, "_api_is_dev", False):  # where it sends no token itself
            return headers
        failure = None
        try:
            headers["authorization"] = f"Bearer {await self._client.token.get()}"
        except Exception as error:  # of whatever library
            failure = explain_failure(error, type(self._client.token).__name__)
        if failure is not None:
            raise failure
        return headers


class OwnSession(ClientSessionTransport):
    """A transport over a session that is opened by the first request.

    Args:
        settings: connections, proxy and timeouts.
    """

    def __init__(self, settings: HttpSettings) -> None:
        super().__init__(settings)
        self._proxies = Proxies(settings.proxy)
        self._tls = tls_context(settings.ca_file)
        self._opened: Any = None

    async def aclose(self) -> None:
        await super().aclose()
        if self._opened is not None:
            await self._opened.session.close()

    async def _session(self) -> Any:
        if self._opened is None:
            library = await asyncio.to_thread(import_module, "gcloud.aio.auth")
            if self._opened is None:  # by another request meanwhile
                self._opened = library.AioSession(open_session(self._settings, self._tls))
        return self._opened

    def _more(self, url: str) -> dict[str, Any]:
        return {"proxy": self._proxies(url)} if self._proxies else {}

    async def _authorised(self, headers: dict[str, str]) -> dict[str, str]:
        return headers  # by the credential of the store
