"""What the SDK makes of faults, and this package of the same: why a commit needs its own engine."""

from __future__ import annotations

import random
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.filedatalake.aio import FileSystemClient

from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.models.fault_rules import Fault
from tests.witness.sdk import answer_of, open_service, write

RETRIES = 3
"""As many as the SDK makes unless it is told otherwise."""


class Sent:
    """The renames that left the SDK, retries included."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def __call__(self, request: Any) -> None:
        """Note the id of a request."""
        headers = request.http_request.headers
        if "x-ms-rename-source" in headers:
            self.ids.append(headers["x-ms-client-request-id"])


async def rename(
    emulator: AdlsEmulator, files: FileSystemClient, retries: int, fault: Fault
) -> tuple[list[str], HttpResponseError | None]:
    """Rename ``d/a`` to ``d/b`` under a fault; return the ids of requests, and the error."""
    await write(files, "d/a", b"1")
    emulator.weather.add(fault)
    sent = Sent()
    async with open_service(emulator, retries=retries, raw_request_hook=sent) as service:
        file = service.get_file_client("data", "d/a")
        try:
            await file.get_file_properties()  # so that a connection is open
            await file.rename_file("data/d/b")
        except HttpResponseError as error:
            return sent.ids, error
    return sent.ids, None


async def names(files: FileSystemClient) -> list[str]:
    """Return the names of the files below ``d``."""
    return [path.name async for path in files.get_paths("d")]


def fault(kind: str, *, times: int = 1, **more: Any) -> Fault:
    """Return a fault that strikes renames."""
    return Fault.from_json({"kind": kind, "op": "rename", "times": times, **more})


def busy(times: int = 1) -> Fault:
    """Return a fault that answers 503 ServerBusy without an effect."""
    return fault("before", times=times, code="ServerBusy")


async def test_rename_while_the_server_is_busy(
    adls_emulator: AdlsEmulator, files: FileSystemClient
) -> None:
    """Refused twice, the third request is done; each has an id of its own."""
    ids, error = await rename(adls_emulator, files, RETRIES, busy(2))

    assert error is None
    assert len(set(ids)) == len(ids) == 3
    assert await names(files) == ["d/b"]


async def test_rename_while_the_server_is_busy_and_retries_are_off(
    adls_emulator: AdlsEmulator, files: FileSystemClient
) -> None:
    """One request, one answer, and nothing has moved."""
    ids, error = await rename(adls_emulator, files, 0, busy())

    assert error is not None
    assert answer_of(error) == (503, "ServerBusy")
    assert len(ids) == 1
    assert await names(files) == ["d/a"]


async def test_rename_that_happens_and_is_answered_500(
    adls_emulator: AdlsEmulator, files: FileSystemClient
) -> None:
    """The retry does not find the source: an error, though the file is where it should be."""
    timed_out = fault("after", code="OperationTimedOut")
    ids, error = await rename(adls_emulator, files, RETRIES, timed_out)

    assert isinstance(error, ResourceNotFoundError)
    assert answer_of(error) == (404, "SourcePathNotFound")
    assert len(ids) == 2
    assert await names(files) == ["d/b"]


@pytest.mark.parametrize("retries", [0, RETRIES])
async def test_rename_that_happens_and_whose_connection_is_cut(
    adls_emulator: AdlsEmulator, files: FileSystemClient, retries: int
) -> None:
    """The HTTP client below sends again by itself, also with retries off: the same error."""
    ids, error = await rename(adls_emulator, files, retries, fault("cut"))

    assert isinstance(error, ResourceNotFoundError)
    assert answer_of(error) == (404, "SourcePathNotFound")
    assert len(ids) == 1
    assert await names(files) == ["d/b"]


async def test_rename_that_is_cut_before_it_happens(
    adls_emulator: AdlsEmulator, files: FileSystemClient
) -> None:
    """What never arrived is sent again, and done."""
    _, error = await rename(adls_emulator, files, RETRIES, fault("cut_before"))

    assert error is None
    assert await names(files) == ["d/b"]


@pytest.mark.parametrize("kind", ["after", "cut", "cut_before"])
async def test_rename_by_this_package_under_the_same_faults(
    adls_emulator: AdlsEmulator, files: FileSystemClient, kind: str
) -> None:
    """It asks who has renamed, and finds that it was itself; the file keeps its etag."""
    source = await write(files, "d/a", b"1")
    etag = (await source.get_file_properties()).etag
    adls_emulator.weather.add(fault(kind, code="OperationTimedOut"))
    url = f"abfs://data@{adls_emulator.account}.dfs.core.windows.net/d"
    options = {"connection_string": adls_emulator.connection_string}
    store = open_store(parse_url(url), StoreSettings(rng=random.Random(0), options=options))
    try:
        await store.head("/d/a")  # so that a connection is open
        await store.rename("/d/a", "/d/b")
    finally:
        await store.aclose()

    assert await names(files) == ["d/b"]
    assert (await files.get_file_client("d/b").get_file_properties()).etag == etag


@pytest.mark.parametrize("op", ["create", "append", "flush", "read", "list", "delete"])
async def test_every_call_survives_a_busy_server(
    adls_emulator: AdlsEmulator, files: FileSystemClient, op: str
) -> None:
    """A request that was refused without an effect is repeated, whatever it is."""
    adls_emulator.weather.add(
        Fault.from_json({"kind": "before", "op": op, "times": 2, "code": "ServerBusy"})
    )
    async with open_service(adls_emulator, retries=RETRIES) as service:
        client = service.get_file_system_client("data")
        file = await write(client, "d/file", b"12345")
        data = await (await file.download_file()).readall()
        found = [path.name async for path in client.get_paths("d")]
        await file.delete_file()

    assert (data, found) == (b"12345", ["d/file"])
    assert await names(files) == []
    assert adls_emulator.weather.struck[f"before {op}"] == 2
