"""Fixtures for pytest: an emulator of ADLS Gen2 for each test that asks for one.

``adls_emulator`` serves on the loop of an async test (with pytest-asyncio or anyio's plugin);
``adls_emulator_thread`` on a thread of its own, for tests that block, start processes or a JVM.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from asynccommit.emulators.adls import AdlsEmulator, EmulatorThread

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # anyio's plugin takes ordinary fixtures
    async_fixture = pytest.fixture  # type: ignore[assignment]


@async_fixture
async def adls_emulator(request: pytest.FixtureRequest) -> AsyncIterator[AdlsEmulator]:
    """An ``AdlsEmulator`` on the loop of this test, on a free port, with nothing in it."""
    # The imports wait: every pytest session where the package is installed loads this module.
    from asynccommit.emulators.adls import AdlsEmulator

    test: Any = getattr(request.node, "obj", None)
    if test is not None and not iscoroutinefunction(test):
        pytest.fail("adls_emulator is for async tests: take adls_emulator_thread in this one")
    async with AdlsEmulator() as emulator:
        yield emulator


@pytest.fixture
def adls_emulator_thread() -> Iterator[EmulatorThread]:
    """The same on a thread of its own."""
    from asynccommit.emulators.adls import running_emulator

    with running_emulator() as emulator:
        yield emulator
