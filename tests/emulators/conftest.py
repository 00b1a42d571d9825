"""An emulator with a filesystem, and a client that shows its wire."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from asynccommit.emulators.adls import AdlsEmulator
from asynccommit.emulators.plugin import adls_emulator, adls_emulator_thread
from tests.emulators.client import WireClient

__all__ = ["adls_emulator", "adls_emulator_thread"]


@pytest.fixture
async def wire(adls_emulator: AdlsEmulator) -> AsyncIterator[WireClient]:
    """A client of an emulator that has the filesystem ``data``."""
    adls_emulator.model.create_filesystem("data")
    async with WireClient(adls_emulator) as client:
        yield client
