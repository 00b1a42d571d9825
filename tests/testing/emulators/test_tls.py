"""Emulators over https: who trusts the certificate, and for which hosts it is."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.storage.blob.aio import ContainerClient
from azure.storage.filedatalake.aio import DataLakeServiceClient

from asynccommit import open_job
from asynccommit.errors import AsyncCommitError, OptionError, UnsupportedError
from asynccommit.stores.http.client import TRANSPORTS
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from asynccommit.testing.emulators.s3_proxy.emulator import running_s3_proxy
from asynccommit.testing.emulators.tls import server_tls

ABFS = "abfs://data@devstoreaccount1.dfs.core.windows.net/t"


def _context(ca_pem: bytes | None) -> ssl.SSLContext:
    assert ca_pem is not None
    return ssl.create_default_context(cadata=ca_pem.decode())


def _stats(endpoint: str, ca_pem: bytes | None) -> None:
    url = f"{endpoint}/_emulator/stats"
    with urllib.request.urlopen(url, context=_context(ca_pem)) as answer:
        assert answer.status == 200


def _ca(emulator: AdlsEmulator, folder: Path) -> str:
    """Write the emulator's certificate to a file, and return its path."""
    assert emulator.ca_pem is not None
    path = folder / "ca.pem"
    path.write_bytes(emulator.ca_pem)
    return str(path)


async def test_azure_s_sdk_trusts_the_certificate_and_no_other(tmp_path: Path) -> None:
    """With the CA's file the SDK writes, renames and reads; without, it refuses to talk."""
    async with AdlsEmulator(tls=True) as emulator:
        ca, place = _ca(emulator, tmp_path), (emulator.url, emulator.key)
        async with DataLakeServiceClient(*place, retry_total=0) as service:
            with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED"):
                await service.create_file_system("other")
        async with DataLakeServiceClient(*place, connection_verify=ca) as service:
            file = await (await service.create_file_system("data")).create_file("a")
            await file.upload_data(b"." * 300_000, overwrite=True)
            moved = await file.rename_file("data/b")
            data = await (await moved.download_file()).readall()

    assert emulator.url.startswith("https://127.0.0.1:")
    assert data == b"." * 300_000
    assert emulator.weather.requests["filesystem"] == 1


@pytest.mark.parametrize("tls", [True, False])
async def test_listings_name_the_endpoint_as_it_is_reached(tls: bool, tmp_path: Path) -> None:
    """Azure's SDK reads the scheme of the service from a page of blobs."""
    async with AdlsEmulator(tls=tls) as emulator:
        emulator.model.create_filesystem("data")
        ca = _ca(emulator, tmp_path) if tls else True
        client = ContainerClient(emulator.url, "data", emulator.key, connection_verify=ca)
        async with client:
            pages: Any = client.list_blobs().by_page()
            assert [blob async for page in pages async for blob in page] == []
            assert pages.service_endpoint.startswith(emulator.endpoint)


@pytest.mark.parametrize("library", TRANSPORTS)
async def test_jobs_commit_over_https(library: str, tmp_path: Path) -> None:
    """A job commits with ``ca_file``, and with the certificate of another emulator it does not."""
    async with AdlsEmulator(tls=True) as emulator:
        emulator.model.create_filesystem("data")
        options: dict[str, Any] = {
            "connection_string": emulator.connection_string,
            "ca_file": _ca(emulator, tmp_path),
            "http_library": library,
        }
        async with open_job(ABFS, storage_options=options) as job, job.task(0) as task:
            await task.put("a", b"." * 300_000)
        other = await asyncio.to_thread(server_tls, True, ())
        (tmp_path / "other.pem").write_bytes(other.ca_pem or b"")
        options["ca_file"] = str(tmp_path / "other.pem")
        with pytest.raises(AsyncCommitError, match="certificate not trusted"):
            async with open_job(ABFS, storage_options=options) as job:
                pass

        assert emulator.model.head("data", "t/a").size == 300_000


async def test_certificate_is_for_the_service_s_names_and_for_one_s_own(tmp_path: Path) -> None:
    """A client that resolves such a name to the emulator accepts the certificate, and no other."""
    names = ["localhost", "devstoreaccount1.dfs.core.windows.net", "adls.test"]
    async with AdlsEmulator(tls=["adls.test"]) as emulator:
        found = [
            await _verified(emulator.port, name, emulator.ca_pem) for name in [*names, "other.test"]
        ]

    assert found == [True, True, True, False]


async def _verified(port: int, name: str, ca_pem: bytes | None) -> bool:
    try:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=_context(ca_pem), server_hostname=name
        )
    except ssl.SSLCertVerificationError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def test_every_emulator_serves_https_on_a_thread() -> None:
    """Each has an https endpoint and the certificate of its CA; with http it has none."""
    with (
        running_emulator(tls=True) as adls,
        running_gcs_emulator(tls=True, buckets=["data"]) as gcs,
        running_s3_proxy("http://127.0.0.1:1", tls=True) as proxy,
        running_emulator() as plain,
    ):
        for each in (adls, gcs, proxy):
            assert each.endpoint.startswith("https://")
            _stats(each.endpoint, each.ca_pem)
        bucket = f"{gcs.endpoint}/storage/v1/b/data"
        with urllib.request.urlopen(bucket, context=_context(gcs.ca_pem)) as answer:
            assert f'"{bucket}"'.encode() in answer.read()
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            _stats(gcs.endpoint, adls.ca_pem)

        assert (plain.endpoint[:7], plain.ca_pem) == ("http://", None)


def test_plain_http_gets_no_answer() -> None:
    """A client that does not speak TLS is cut off, and the emulator goes on."""
    with running_emulator(tls=True) as emulator:
        client = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=20)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            client.request("GET", "/_emulator/stats")
            client.getresponse()
        client.close()

        _stats(emulator.endpoint, emulator.ca_pem)


def test_context_of_one_s_own_is_used_as_it_is() -> None:
    """A given context is served with, and its authority is unknown."""
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    assert server_tls(own, ("host",)) == (own, None)
    assert server_tls(False, ("host",)) == server_tls([], ("host",)) == (None, None)


@pytest.mark.parametrize("tls", ["adls.test", ["a b"]])
def test_names_that_are_wrong_are_refused(tls: Any) -> None:
    """Text alone, of which each letter would be a name, and a name with a space."""
    with pytest.raises(OptionError, match="host name"):
        server_tls(tls, ())


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without trustme the error says what to install."""
    monkeypatch.setitem(sys.modules, "trustme", None)

    with pytest.raises(UnsupportedError, match=r"trustme: pip install 'asynccommit\[emulate\]'"):
        server_tls(True, ())
