"""Clients of other hands, pointed at the emulator of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from azure.storage.filedatalake.aio import DataLakeServiceClient, FileSystemClient

from asynccommit.emulators.adls import AdlsEmulator
from asynccommit.emulators.plugin import adls_emulator, adls_emulator_thread
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
