"""Emulators with something to ask about, and clients that show their wires."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from asynccommit.testing.models.gcs.model import BucketOptions
from asynccommit.testing.pytest_plugin import (
    adls_emulator,
    adls_emulator_thread,
    gcs_emulator,
    gcs_emulator_thread,
    s3_proxy,
    s3_proxy_thread,
)
from tests.testing.emulators.adls.client import WireClient
from tests.testing.emulators.gcs.client import BUCKET, GcsClient

__all__ = [
    "adls_emulator",
    "adls_emulator_thread",
    "gcs_emulator",
    "gcs_emulator_thread",
    "s3_proxy",
    "s3_proxy_thread",
]


@pytest.fixture
async def wire(adls_emulator: AdlsEmulator) -> AsyncIterator[WireClient]:
    """A client of an emulator that has the filesystem ``data``."""
    adls_emulator.model.create_filesystem("data")
    async with WireClient(adls_emulator) as client:
        yield client


@pytest.fixture
async def gcs(gcs_emulator: GcsEmulator) -> AsyncIterator[GcsClient]:
    """A client of an emulator that has the flat bucket ``data``."""
    gcs_emulator.service.create_bucket(BUCKET)
    async with GcsClient(gcs_emulator) as client:
        yield client


@pytest.fixture
async def hns(gcs_emulator: GcsEmulator) -> AsyncIterator[GcsClient]:
    """A client of an emulator whose bucket ``data`` has a hierarchical namespace."""
    gcs_emulator.service.create_bucket(BUCKET, BucketOptions(hns=True))
    async with GcsClient(gcs_emulator) as client:
        yield client
