"""Requests sent by the session of gcloud-aio-storage.

Each request goes through the ``AioSession`` of a ``Storage`` client, with the connections, proxy
and user agent of its aiohttp session, and is authorised by its ``Token``; both are public.
"""

from __future__ import annotations

from typing import Any

from asynccommit.errors import OptionError
from asynccommit.stores.gcs.credentials import GcsAnonymous, GcsCredential
from asynccommit.stores.gcs.options import GcsSettings
from asynccommit.stores.gcs.sdk_transport import ClientSessionTransport, OwnSession
from asynccommit.stores.http.base import Transport


def open_sdk(settings: GcsSettings) -> tuple[GcsCredential, Transport]:
    """Return the transport of the settings' client, and its credential.

    Without ``client`` in the settings, a session is made of all others.

    Raises:
        OptionError: ``client`` is not a ``Storage``.
    """
    given = settings.client
    if given is None:
        return settings.credential, OwnSession(settings.http)
    if not hasattr(_session_of(given), "request") or not hasattr(given, "token"):
        raise OptionError(
            f"client is a {type(given).__name__}: with http_library='sdk', expected a Storage of "
            "gcloud.aio.storage"
        )
    return ByClient(settings.credential), ClientSessionTransport(settings.http, given)


def _session_of(client: Any) -> Any:
    """Return the session of a client; ``None`` if it has none."""
    try:
        return getattr(client, "session", None)
    except RuntimeError:  # of an asynchronous gcsfs that is not connected
        return None


class ByClient(GcsAnonymous):
    """A credential whose requests the token of a client authorises."""

    def __init__(self, inner: GcsCredential) -> None:
        super().__init__()
        self._inner = inner

    def hide(self, text: str) -> str:
        return self._inner.hide(text)

    async def aclose(self) -> None:
        await self._inner.aclose()
