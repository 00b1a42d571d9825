"""Pytest fixtures that run a store emulator for a test.

``adls_emulator`` and ``gcs_emulator`` serve on the event loop of an async test (with pytest-asyncio
or anyio's plugin); ``adls_emulator_thread`` and ``gcs_emulator_thread`` on a thread of their own,
for tests that block, start processes or a JVM. ``s3_proxy`` and ``s3_proxy_thread`` put a proxy
with fault injection in front of a server that a test provides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, EmulatorThread
    from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, GcsEmulatorThread
    from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy, S3ProxyThread

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # anyio's plugin takes ordinary fixtures
    async_fixture = pytest.fixture  # type: ignore[assignment]

MakeProxy: TypeAlias = "Callable[..., Awaitable[S3Proxy]]"
"""Takes the URL of a server, and the other arguments of ``S3Proxy``."""

MakeProxyThread: TypeAlias = "Callable[..., S3ProxyThread]"

# Imported late: every pytest session in an environment with this package loads this module.


@async_fixture
async def adls_emulator(request: pytest.FixtureRequest) -> AsyncIterator[AdlsEmulator]:
    """Run an empty ``AdlsEmulator`` on the test's event loop, on a free port."""
    from asynccommit.testing.emulators.adls.emulator import AdlsEmulator

    _need_async(request)
    async with AdlsEmulator() as emulator:
        yield emulator


@pytest.fixture
def adls_emulator_thread() -> Iterator[EmulatorThread]:
    """Run an empty ADLS emulator on a thread of its own."""
    from asynccommit.testing.emulators.adls.emulator import running_emulator

    with running_emulator() as emulator:
        yield emulator


@async_fixture
async def gcs_emulator(request: pytest.FixtureRequest) -> AsyncIterator[GcsEmulator]:
    """Run a ``GcsEmulator`` without buckets on the test's event loop and a free port."""
    from asynccommit.testing.emulators.gcs.emulator import GcsEmulator

    _need_async(request)
    async with GcsEmulator() as emulator:
        yield emulator


@pytest.fixture
def gcs_emulator_thread() -> Iterator[GcsEmulatorThread]:
    """Run a ``GcsEmulator`` without buckets on a thread of its own."""
    from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator

    with running_gcs_emulator() as emulator:
        yield emulator


@async_fixture
async def s3_proxy(request: pytest.FixtureRequest) -> AsyncIterator[MakeProxy]:
    """Return a function that starts an ``S3Proxy`` in front of a server.

    ``proxy = await s3_proxy("http://127.0.0.1:5000")``; other arguments of ``S3Proxy`` may follow.
    The proxy serves on the event loop of this test until the test ends.
    """
    from asynccommit.testing.emulators.s3_proxy.emulator import S3Proxy

    _need_async(request)
    async with AsyncExitStack() as stack:

        async def make(target: str, **arguments: Any) -> S3Proxy:
            return await stack.enter_async_context(S3Proxy(target, **arguments))

        yield make


@pytest.fixture
def s3_proxy_thread() -> Iterator[MakeProxyThread]:
    """Return a function that starts an ``S3Proxy`` on a thread of its own.

    ``proxy = s3_proxy_thread("http://127.0.0.1:5000")``
    """
    from asynccommit.testing.emulators.s3_proxy.emulator import running_s3_proxy

    with ExitStack() as stack:

        def make(target: str, **arguments: Any) -> S3ProxyThread:
            return stack.enter_context(running_s3_proxy(target, **arguments))

        yield make


def _need_async(request: pytest.FixtureRequest) -> None:
    test: Any = getattr(request.node, "obj", None)
    if test is not None and not iscoroutinefunction(test):
        name = request.fixturename
        pytest.fail(f"{name} is for async tests: use {name}_thread in this one")
