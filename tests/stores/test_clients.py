"""A client that a program has already tells account, endpoint and credential."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from adlfs import AzureBlobFileSystem
from azure.core.credentials import AccessToken
from azure.storage.blob import BlobServiceClient
from azure.storage.filedatalake import DataLakeServiceClient
from azure.storage.filedatalake.aio import DataLakeServiceClient as AsyncDataLakeServiceClient
from gcloud.aio.storage import Storage
from gcsfs import GCSFileSystem

from asynccommit import OptionError, open_store
from asynccommit.stores.clients import with_client
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.pytest_plugin import adls_emulator, gcs_emulator

__all__ = ["adls_emulator", "gcs_emulator"]

AZURE: dict[str, Callable[[AdlsEmulator], Any]] = {
    "adlfs": lambda emulator: AzureBlobFileSystem(
        connection_string=emulator.connection_string, skip_instance_cache=True
    ),
    "data lake": lambda emulator: DataLakeServiceClient.from_connection_string(
        emulator.connection_string
    ),
    "data lake, asyncio": lambda emulator: AsyncDataLakeServiceClient.from_connection_string(
        emulator.connection_string
    ),
    "blob": lambda emulator: BlobServiceClient.from_connection_string(emulator.connection_string),
}


@pytest.mark.parametrize("kind", AZURE)
async def test_clients_of_azure(adls_emulator: AdlsEmulator, kind: str) -> None:
    """A store with the client's account and key writes to the client's endpoint."""
    adls_emulator.model.create_filesystem("data")
    client = AZURE[kind](adls_emulator)
    url = f"abfs://data@{adls_emulator.account}.dfs.core.windows.net/"

    async with open_store(url, storage_options={"client": client}) as store:
        await store.put("/a", b"four")
        assert (await store.head("/a")).size == 4

    if asyncio.iscoroutinefunction(getattr(client, "close", None)):
        await client.close()


async def test_clients_of_google(gcs_emulator: GcsEmulator) -> None:
    """The same with gcsfs and gcloud-aio-storage."""
    gcs_emulator.service.create_bucket("data")
    endpoint = f"http://127.0.0.1:{gcs_emulator.port}"
    async with Storage(api_root=endpoint) as storage:
        files = GCSFileSystem(token="anon", endpoint_url=endpoint, skip_instance_cache=True)
        for number, client in enumerate((files, storage)):
            async with open_store("gs://data/", storage_options={"client": client}) as store:
                await store.put(f"/{number}", b"four")

    assert {item.name for item in gcs_emulator.service.list("data").items} == {"0", "1"}


class Token:
    """A token credential."""

    def get_token(self, *scopes: str, **more: Any) -> AccessToken:
        """Return a token."""
        return AccessToken("t", 0)


def test_each_kind_of_credential() -> None:
    """A SAS, a token credential, none at all, and a service account are taken as they are."""
    url = "https://acct.dfs.core.windows.net"
    credential = Token()
    sas = DataLakeServiceClient(f"{url}?sv=1&sig=abc")
    assert with_client({"client": sas}) == {
        "account_name": "acct",
        "use_ssl": True,
        "sas_token": "sv=1&sig=abc",
    }
    assert with_client({"client": DataLakeServiceClient(url, credential)})["credential"] is (
        credential
    )
    assert with_client({"client": DataLakeServiceClient(url)})["anon"] is True
    token = SimpleNamespace(service_data={"client_email": "a@b"})
    google = SimpleNamespace(token=token, session=None, _api_root="https://storage.googleapis.com")
    assert with_client({"client": google}) == {"token": {"client_email": "a@b"}}
    machine = SimpleNamespace(token=SimpleNamespace(service_data={}), session=None)
    assert with_client({"client": machine}) == {"token": "google_default"}


def test_other_options_come_first() -> None:
    """What is given beside the client overrides it, and anything else is no client."""
    client = DataLakeServiceClient("https://acct.dfs.core.windows.net")
    assert with_client({"client": client, "use_ssl": False})["use_ssl"] is False
    assert with_client({"rate": 1}) == {"rate": 1}
    with pytest.raises(OptionError, match="client is a int: expected a filesystem of adlfs"):
        with_client({"client": 7})
