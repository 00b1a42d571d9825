"""Requests through the pipeline of azure-storage-file-datalake."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from adlfs import AzureBlobFileSystem
from azure.core.credentials import AzureSasCredential
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.filedatalake import DataLakeServiceClient as BlockingClient
from azure.storage.filedatalake import FileSystemSasPermissions, generate_file_system_sas
from azure.storage.filedatalake.aio import DataLakeServiceClient

from asynccommit import OptionError, UnsupportedError, open_store
from asynccommit.errors import OutcomeUnknownError, ThrottledError, UnavailableError
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.fault_rules import AFTER, BEFORE, Fault

FS = "data"
URL = f"abfs://{FS}@devstoreaccount1.dfs.core.windows.net/"
SDK = {"http_library": "sdk"}


@pytest.fixture
async def emulator() -> AsyncIterator[AdlsEmulator]:
    """An emulator with one container."""
    async with AdlsEmulator() as running:
        running.model.create_filesystem(FS)
        yield running


def _store(emulator: AdlsEmulator, **options: Any) -> AdlsStore:
    if "client" not in options:
        options["connection_string"] = emulator.connection_string
    return AdlsStore(parse_url(URL), {**SDK, **options}, environ={})


async def test_requests_go_through_the_users_client(emulator: AdlsEmulator) -> None:
    """Its hooks see each request, with its user agent; it is not closed."""
    seen = []
    async with DataLakeServiceClient.from_connection_string(
        emulator.connection_string,
        user_agent="the-company/7",
        raw_response_hook=lambda it: seen.append(it.http_request),
    ) as client:
        async with open_store(URL, storage_options={"client": client, **SDK}) as store:
            await store.put("/a", b"four")
            await store.rename("/a", "/b")
        files = client.get_file_system_client(FS)
        assert [path.name async for path in files.get_paths()] == ["b"]

    moved = [it for it in seen if "x-ms-rename-source" in it.headers]
    assert len(moved) == 2
    assert {it.headers["User-Agent"].partition(" ")[0] for it in moved} == {"the-company/7"}
    assert any("x-ms-client-transaction-id" in it.headers for it in moved)


async def test_clients_of_blobs_are_taken_too(emulator: AdlsEmulator) -> None:
    """A pipeline is that of an account, whichever of its services the client is for."""
    async with (
        BlobServiceClient.from_connection_string(emulator.connection_string) as client,
        open_store(URL, storage_options={"client": client, **SDK}) as store,
    ):
        await store.put("/a", b"four")
        assert (await store.head("/a")).size == 4


async def test_other_clients_are_refused(emulator: AdlsEmulator) -> None:
    """One that blocks, and a filesystem of fsspec, whose loop is another."""
    blocking = BlockingClient.from_connection_string(emulator.connection_string)
    files = AzureBlobFileSystem(
        connection_string=emulator.connection_string, skip_instance_cache=True
    )
    for client in (blocking, files):
        with pytest.raises(OptionError, match=r"expected a client of azure\.storage\.file"):
            async with open_store(URL, storage_options={"client": client, **SDK}):
                pass


@pytest.mark.parametrize("spelling", ["client", "client, in its URL", "option"])
async def test_a_sas_is_sent_once(emulator: AdlsEmulator, spelling: str) -> None:
    """Of a request and of the source of its rename, however it was given."""
    sas = _sas(emulator)
    endpoint = f"http://127.0.0.1:{emulator.port}/{emulator.account}"
    address = f"{endpoint}?{sas}" if spelling == "client, in its URL" else endpoint
    credential = AzureSasCredential(sas) if spelling == "client" else None
    async with DataLakeServiceClient(address, credential) as client:
        option = {"account_host": f"127.0.0.1:{emulator.port}", "use_ssl": False, "sas_token": sas}
        more: dict[str, Any] = option if spelling == "option" else {"client": client}
        async with open_store(URL, storage_options={**more, **SDK}) as store:
            await store.put("/a", b"four")
            await store.rename("/a", "/b")
            assert await store.get("/b", 10) == b"four"


def _sas(emulator: AdlsEmulator) -> str:
    key = dict(part.partition("=")[::2] for part in emulator.connection_string.split(";"))
    return str(
        generate_file_system_sas(
            emulator.account,
            FS,
            key["AccountKey"],
            FileSystemSasPermissions.from_string("racwdlm"),
            "2099-01-01T00:00:00Z",
        )
    )


async def test_the_client_repeats_nothing(emulator: AdlsEmulator) -> None:
    """A refused or lost request is sent once: a store repeats what is safe to repeat."""
    async with DataLakeServiceClient.from_connection_string(emulator.connection_string) as client:
        async with open_store(URL, storage_options={"client": client}) as plain:
            await plain.put("/a", b"")
        store = AdlsStore(
            parse_url(URL),
            {"connection_string": emulator.connection_string, "client": client, **SDK},
            environ={},
        )
        emulator.weather.add(Fault(BEFORE, "rename", code="ServerBusy", times=1))
        with pytest.raises(ThrottledError):
            await store.rename("/a", "/b")
        emulator.weather.add(Fault(AFTER, "rename", times=1))
        with pytest.raises(OutcomeUnknownError):
            await store.rename("/a", "/b")
        await store.aclose()

    assert emulator.weather.requests["rename"] == 3  # one of them by put


async def test_large_files_are_copied_in_pieces(emulator: AdlsEmulator) -> None:
    """With an account key, whose signature in this library leaves out the usual header."""
    store = _store(emulator)
    data = bytes(range(256)) * (40 << 10)
    await store.put("/a", data)
    await store.copy("/a", "/b")

    assert await store.get("/b", 11 << 20) == data
    await store.aclose()


async def test_a_server_that_is_away_was_not_asked(emulator: AdlsEmulator) -> None:
    """No connection is an unavailable store, not an unknown outcome, and names no query."""
    store = _store(emulator, account_host="127.0.0.1:1")
    with pytest.raises(UnavailableError, match="cannot connect") as caught:
        await store.delete("/a")

    assert "recursive" not in str(caught.value)
    await store.aclose()


async def test_many_first_requests_share_one_client(emulator: AdlsEmulator) -> None:
    """The client is made by the first request, once."""
    store = _store(emulator)
    await asyncio.gather(*(store.mkdir(f"/d{number}") for number in range(20)))
    assert len((await store.list("/")).entries) == 20
    await store.aclose()


def test_a_missing_library_is_named(
    emulator: AdlsEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the extra that installs it."""
    monkeypatch.delitem(sys.modules, "asynccommit.stores.adls.sdk", raising=False)
    monkeypatch.setitem(sys.modules, "azure.storage.filedatalake.aio", None)

    with pytest.raises(UnsupportedError, match=r"pip install 'asynccommit\[adls-sdk\]'"):
        _store(emulator)
    monkeypatch.undo()
    importlib.import_module("asynccommit.stores.adls.sdk")
