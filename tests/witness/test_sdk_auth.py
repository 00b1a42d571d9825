"""Who may ask, by azure-storage-file-datalake: keys, shared access signatures, bearer tokens."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.filedatalake import (
    generate_account_sas,
    generate_directory_sas,
    generate_file_sas,
    generate_file_system_sas,
)
from azure.storage.filedatalake.aio import DataLakeServiceClient, FileSystemClient

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.adls.account import AdlsLimits
from tests.witness.sdk import answer_of, open_service, write

OTHER_KEY = "bm90IHRoZSBrZXk="
HOUR = timedelta(hours=1)


async def test_wrong_key(adls_emulator: AdlsEmulator, files: FileSystemClient) -> None:
    """A signature by another key is refused, and nothing is done."""
    async with open_service(adls_emulator, OTHER_KEY) as service:
        with pytest.raises(ClientAuthenticationError) as caught:
            await service.get_file_client("data", "file").create_file()

    assert answer_of(caught.value) == (403, "AuthenticationFailed")
    assert [path async for path in files.get_paths()] == []


async def test_no_credential(adls_emulator: AdlsEmulator) -> None:
    """A request that nobody signed is told to."""
    async with DataLakeServiceClient(adls_emulator.url, retry_total=0) as service:
        with pytest.raises(ClientAuthenticationError) as caught:
            await service.get_file_client("data", "file").create_file()

    assert answer_of(caught.value) == (401, "NoAuthenticationInformation")


async def test_key_by_name_and_connection_string(
    adls_emulator: AdlsEmulator, files: FileSystemClient
) -> None:
    """The key may come as a named credential, or in a connection string."""
    named = AzureNamedKeyCredential(adls_emulator.account, adls_emulator.key)
    text = adls_emulator.connection_string
    async with open_service(adls_emulator, named) as service:
        await service.get_file_client("data", "a").create_file()
    async with DataLakeServiceClient.from_connection_string(text, retry_total=0) as service:
        await service.get_file_client("data", "b").create_file()

    assert [path.name async for path in files.get_paths()] == ["a", "b"]


def signature(emulator: AdlsEmulator, kind: str, permission: str, hours: float = 1) -> str:
    """Return a shared access signature of a kind, valid for ``hours``."""
    account, key = emulator.account, emulator.key
    expiry = datetime.now(UTC) + hours * HOUR
    if kind == "account":
        return generate_account_sas(account, key, "sco", permission, expiry)
    if kind == "filesystem":
        return generate_file_system_sas(account, "data", key, permission, expiry)
    if kind == "directory":
        return generate_directory_sas(account, "data", "d", key, permission, expiry)
    return generate_file_sas(account, "data", "d", "file", key, permission, expiry)


@pytest.mark.parametrize("kind", ["account", "filesystem", "directory", "file"])
async def test_shared_access_signature(
    adls_emulator: AdlsEmulator, files: FileSystemClient, kind: str
) -> None:
    """Each kind of signature opens what it is for."""
    await write(files, "d/file", b"12345")
    sas = AzureSasCredential(signature(adls_emulator, kind, "rw"))
    async with open_service(adls_emulator, sas) as service:
        file = service.get_file_client("data", "d/file")
        data = await (await file.download_file()).readall()
        await file.append_data(b"6", 5, flush=True)

    assert data == b"12345"
    assert (await files.get_file_client("d/file").get_file_properties()).size == 6


@pytest.mark.parametrize("kind", ["account", "filesystem"])
async def test_shared_access_signature_of_a_rename(
    adls_emulator: AdlsEmulator, files: FileSystemClient, kind: str
) -> None:
    """A rename under a signature carries it with the source too, and is done."""
    await write(files, "d/file", b"1")
    sas = signature(adls_emulator, kind, "racwdlm")
    async with open_service(adls_emulator, sas) as service:
        await service.get_file_client("data", "d/file").rename_file("data/d/moved")

    assert [path.name async for path in files.get_paths("d")] == ["d/moved"]


@pytest.mark.parametrize(
    "kind, permission, hours, answer",
    [
        ("filesystem", "rw", -1, (403, "AuthenticationFailed")),
        ("account", "rw", -1, (403, "AuthenticationFailed")),
        ("file", "rw", 1, (403, "AuthenticationFailed")),
        ("directory", "rw", 1, (403, "AuthenticationFailed")),
        ("filesystem", "r", 1, (403, "AuthorizationPermissionMismatch")),
    ],
)
async def test_shared_access_signature_that_is_refused(
    adls_emulator: AdlsEmulator,
    files: FileSystemClient,
    kind: str,
    permission: str,
    hours: float,
    answer: tuple[int, str],
) -> None:
    """One that has expired, is for something else, or does not permit this, is refused."""
    sas = AzureSasCredential(signature(adls_emulator, kind, permission, hours))
    async with open_service(adls_emulator, sas) as service:
        with pytest.raises(HttpResponseError) as caught:
            await service.get_file_client("data", "elsewhere/file").create_file()

    assert answer_of(caught.value) == answer
    assert [path async for path in files.get_paths()] == []


class Tokens:
    """A credential that hands out one token after the other."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.asked = 0

    async def get_token(self, *scopes: str, **kwargs: Any) -> AccessToken:
        """Return the next token, the last one from then on."""
        self.asked += 1
        token = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        return AccessToken(token, int((datetime.now(UTC) + HOUR).timestamp()))

    async def close(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Tokens:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[AdlsEmulator]:
    """Yield an emulator that speaks TLS: the SDK sends a token over nothing else."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with AdlsEmulator(tls=context) as emulator:
        emulator.model.create_filesystem("data")
        yield emulator


def names(emulator: AdlsEmulator) -> list[str]:
    """Return the paths that are in the filesystem."""
    return [name for name, _ in emulator.model.list("data", recursive=True).entries]


async def test_bearer_token(secure: AdlsEmulator, tmp_path: Path) -> None:
    """A token is as good as the key."""
    verify = str(tmp_path / "ca.pem")
    async with open_service(secure, Tokens("one"), connection_verify=verify) as service:
        await service.get_file_client("data", "file").create_file()

    assert names(secure) == ["file"]


async def test_bearer_token_that_expires(secure: AdlsEmulator, tmp_path: Path) -> None:
    """A token that has expired is challenged, and the SDK goes on with a fresh one."""
    tokens, verify = Tokens("old", "new"), str(tmp_path / "ca.pem")
    async with open_service(secure, tokens, connection_verify=verify) as service:
        await service.get_file_client("data", "a").create_file()
        secure.keyring.expired.add("old")
        await service.get_file_client("data", "b").create_file()

    assert tokens.asked == 2
    assert names(secure) == ["a", "b"]


async def test_delete_by_token_in_pages(secure: AdlsEmulator, tmp_path: Path) -> None:
    """With a token the SDK deletes page by page, following the continuation, to the end."""
    for number in range(5):
        secure.model.create("data", f"d/e{number}/file")
    secure.model.limits = AdlsLimits(delete=2)
    verify = str(tmp_path / "ca.pem")
    async with open_service(secure, Tokens("one"), connection_verify=verify) as service:
        await service.get_directory_client("data", "d").delete_directory()

    assert names(secure) == []
    assert secure.weather.requests["delete"] > 1
