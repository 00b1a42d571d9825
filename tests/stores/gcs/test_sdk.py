"""Requests through the session of gcloud-aio-storage."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from gcloud.aio.auth import Token
from gcloud.aio.storage import Storage
from gcsfs import GCSFileSystem

from asynccommit import OptionError, UnsupportedError, open_store
from asynccommit.errors import DeniedError, ThrottledError, UnavailableError
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.fault_rules import BEFORE, Fault
from tests.support.google import IdentityServer, service_account
from tests.support.servers import RawServer, Seen, answer

URL = "gs://data/"
SDK = {"http_library": "sdk"}


@pytest.fixture
async def emulator() -> AsyncIterator[GcsEmulator]:
    """An emulator with one bucket."""
    async with GcsEmulator(buckets=["data"]) as running:
        yield running


async def test_requests_go_through_the_users_client(emulator: GcsEmulator) -> None:
    """Through its session, with the session's headers; it is not closed."""
    seen: list[aiohttp.TraceRequestStartParams] = []
    trace = aiohttp.TraceConfig()

    async def note(session: Any, context: Any, it: aiohttp.TraceRequestStartParams) -> None:
        seen.append(it)

    trace.on_request_start.append(note)
    headers = {"User-Agent": "the-company/7"}
    async with (
        aiohttp.ClientSession(trace_configs=[trace], headers=headers) as session,
        _client(session, api_root=emulator.endpoint) as client,
    ):
        async with open_store(URL, storage_options={"client": client, **SDK}) as store:
            await store.put("/a", b"four")
            await store.rename("/a", "/b")
        assert [it["name"] for it in (await client.list_objects("data"))["items"]] == ["b"]

    assert [it.url.path.rpartition("/")[2] for it in seen if "moveTo" in it.url.path] == ["b"]
    assert {it.headers["User-Agent"] for it in seen} == {"the-company/7"}


async def test_the_token_of_the_client_authorises(emulator: GcsEmulator) -> None:
    """It is asked for by the client itself, once, at the endpoint that it has."""
    asked = []

    async def give(seen: Seen, writer: asyncio.StreamWriter) -> None:
        asked.append(seen.line)
        body = b'{"access_token": "ya29.1", "expires_in": 3600}'
        writer.write(answer("200 OK", body, ["Content-Type: application/json"]))

    async with RawServer(give) as server, aiohttp.ClientSession() as session:
        emulator.keyring.tokens = {"ya29.1"}
        token = _token(session, server.url("/token"))
        client = _client(session, token=token, api_root=emulator.endpoint)
        client._api_is_dev = False  # the argument is missing in version 9.4
        store = GcsStore(parse_url(URL), _options(emulator, client), environ={})
        for number in range(3):
            await store.put(f"/{number}", b"")
        await store.aclose()

        assert len(asked) == 1
        assert not session.closed


def _client(session: Any, **more: Any) -> Storage:
    """Return a client; its type of the session is that of another library."""
    return Storage(session=session, **more)


def _token(session: Any, url: str) -> Token:
    token = Token(session=session, scopes=["a"])
    token.service_data = service_account(url)
    token.token_uri = url
    return token


def _options(emulator: GcsEmulator, client: Storage) -> dict[str, Any]:
    return {"endpoint_url": emulator.endpoint, "token": "anon", "client": client, **SDK}


@pytest.mark.full
async def test_a_client_without_a_token_is_told(emulator: GcsEmulator) -> None:
    """A token that cannot be got is a denial that names it, without secrets."""
    async with IdentityServer() as server, aiohttp.ClientSession() as session:
        server.reply = lambda request: (400, {"error": "invalid_grant"})
        token = _token(session, server.url("/token"))
        client = _client(session, token=token, api_root=emulator.endpoint)
        client._api_is_dev = False  # the argument is missing in version 9.4
        store = GcsStore(parse_url(URL), _options(emulator, client), environ={})
        with pytest.raises((DeniedError, UnavailableError), match="no access token from Token"):
            await store.head("/a")
        await store.aclose()


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_other_clients_are_refused(emulator: GcsEmulator, asynchronous: bool) -> None:
    """A filesystem of fsspec has no session of this kind."""
    given = {"token": "anon", "endpoint_url": emulator.endpoint, "skip_instance_cache": True}
    files = GCSFileSystem(asynchronous=asynchronous, **given)
    with pytest.raises(OptionError, match=r"expected a Storage of gcloud\.aio\.storage"):
        async with open_store(URL, storage_options={"client": files, **SDK}):
            pass


async def test_the_session_repeats_nothing(emulator: GcsEmulator) -> None:
    """A refused request is an error of the store at once, not an exception of aiohttp."""
    options = {"endpoint_url": emulator.endpoint, **SDK}
    store = GcsStore(parse_url(URL), options, environ={})
    await store.put("/a", b"")
    emulator.weather.add(Fault(BEFORE, "move", times=1))
    with pytest.raises(ThrottledError):
        await store.rename("/a", "/b")
    await store.aclose()

    assert emulator.weather.requests["move"] == 1


async def test_a_closed_session_was_not_asked(emulator: GcsEmulator) -> None:
    """A client that is closed too early makes the store unavailable; nothing is lost."""
    client = Storage(api_root=emulator.endpoint)
    store = GcsStore(parse_url(URL), _options(emulator, client), environ={})
    await store.put("/a", b"")
    await client.close()
    with pytest.raises(UnavailableError, match="session of the client is closed"):
        await store.delete("/a")
    await store.aclose()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that installs it."""
    for name in ("sdk", "sdk_transport"):
        monkeypatch.delitem(sys.modules, f"asynccommit.stores.gcs.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "asynccommit.stores.http.with_aiohttp", None)

    with pytest.raises(UnsupportedError, match=r"pip install 'asynccommit\[gcs-sdk\]'"):
        GcsStore(parse_url(URL), {"endpoint_url": "http://127.0.0.1:1", **SDK}, environ={})
