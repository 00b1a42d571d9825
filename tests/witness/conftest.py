"""Clients of other hands, pointed at the emulator of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from azure.storage.filedatalake.aio import DataLakeServiceClient, FileSystemClient

from asynccommit.stores.policies.per_object_rate import PerObjectRate
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import (
    GcsEmulator,
    GcsEmulatorThread,
    running_gcs_emulator,
)
from asynccommit.testing.pytest_plugin import adls_emulator, adls_emulator_thread
from tests.support.gcs_control import running_control
from tests.witness.gcs import BUCKETS, Folders, open_client, open_files, open_folders, start_again
from tests.witness.sdk import open_service

__all__ = ["adls_emulator", "adls_emulator_thread"]


@pytest.fixture
async def service(adls_emulator: AdlsEmulator) -> AsyncIterator[DataLakeServiceClient]:
    """Yield the SDK's client of the account, which asks once and never again."""
    async with open_service(adls_emulator) as opened:
        yield opened


@pytest.fixture
async def files(service: DataLakeServiceClient) -> FileSystemClient:
    """Return the SDK's client of a new filesystem."""
    return await service.create_file_system("data")


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsEmulatorThread]:
    """Yield the emulator of Google Cloud Storage that all tests share, one after the other."""
    with running_gcs_emulator(buckets=BUCKETS) as emulator:
        yield emulator


@pytest.fixture
def gcs(gcs_server: GcsEmulatorThread) -> GcsEmulatorThread:
    """Return an emulator of Google Cloud Storage with some buckets, which are empty."""
    gcs_server.do(start_again)
    return gcs_server


@pytest.fixture(scope="session")
def folders(gcs_server: GcsEmulatorThread) -> Iterator[Folders]:
    """Yield a client of its folders by gRPC, and the methods that are asked for."""
    with running_control(gcs_server) as (address, methods), open_folders(address) as client:
        yield client, methods


@pytest.fixture
async def gcs_here() -> AsyncIterator[GcsEmulator]:
    """Yield one on the loop of this test, with the same buckets."""
    async with GcsEmulator(buckets=BUCKETS) as emulator:
        yield emulator


@pytest.fixture
def client(gcs: GcsEmulatorThread) -> Iterator[Any]:
    """Yield the client of Google's SDK."""
    with open_client(gcs.endpoint) as opened:
        yield opened


@pytest.fixture
def bucket(client: Any) -> Any:
    """Return the SDK's bucket without folders or versions."""
    return client.bucket("data")


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stores of this package not wait a second between two changes of one name."""
    monkeypatch.setattr(
        "asynccommit.stores.registry.PerObjectRate", lambda _, account: PerObjectRate(0.0, account)
    )


# --- gcsfs -----------------------------------------------------------------------------------


@pytest.fixture(params=["older-data", "newer-data", "newer-tree"])
def place(request: pytest.FixtureRequest) -> str:
    """Return a class of gcsfs and a bucket."""
    return str(request.param)


@pytest.fixture
def root(place: str) -> str:
    """Return the bucket of a place."""
    return place.partition("-")[2]


@pytest.fixture
def gcs_files(gcs: GcsEmulatorThread, folders: Folders, place: str) -> Iterator[Any]:
    """Yield gcsfs as a place says."""
    client, methods = folders
    methods.clear()
    with open_files(gcs, client if place.startswith("newer") else None) as opened:
        yield opened


@pytest.fixture
def older(gcs: GcsEmulatorThread) -> Iterator[Any]:
    """Yield gcsfs' older class."""
    with open_files(gcs) as opened:
        yield opened


@pytest.fixture
def newer(gcs: GcsEmulatorThread, folders: Folders) -> Iterator[Any]:
    """Yield gcsfs' newer class."""
    folders[1].clear()
    with open_files(gcs, folders[0]) as opened:
        yield opened
