"""The emulator of ADLS without a socket: the same requests, weather and responses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from asynccommit.errors import NotFoundError, OutcomeUnknownError
from asynccommit.runtime.host import this_host
from asynccommit.stores.adls.flat.store import FlatBlobStore
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.http.base import TooLargeError
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.adls.inprocess import InProcessAdls
from asynccommit.testing.models.fault_rules import ADLS, CUT, LATE, Climate, Fault, FaultInjector
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.crashes import clock
from tests.support.flat_crashes import AGENT, FlatWorld

URL = "abfs://data@devstoreaccount1.dfs.core.windows.net/"


async def test_both_stores_reach_it() -> None:
    """A store with renames and one with block lists send what they send over HTTP."""
    directories, flat = (
        AdlsEmulator(filesystems=["data"]),
        AdlsEmulator(filesystems=["data"], hns=False),
    )
    for emulator, kind in ((directories, AdlsStore), (flat, FlatBlobStore)):
        options = {"connection_string": emulator.connection_string}
        transport = InProcessAdls(emulator, agent=AGENT)
        store = kind(parse_url(URL), options, environ={}, transport=transport)
        await store.put("/f", b"content")
        assert await store.get("/f", 100) == b"content"
        with pytest.raises(NotFoundError):
            await store.head("/g")
        await store.aclose()


async def test_a_response_is_limited_and_a_stranger_refused() -> None:
    """It keeps to the contract of a transport."""
    transport = InProcessAdls(AdlsEmulator(filesystems=["data"]))
    with pytest.raises(TooLargeError):
        await transport.send("GET", "http://h/devstoreaccount1/data", {}, limit=3)
    answer = await transport.send("GET", "http://h/another/data", {}, limit=10_000)
    assert (answer.status, answer.headers["x-ms-error-code"]) == (404, "ResourceNotFound")


def test_weather_is_that_of_the_loop() -> None:
    """A cut response is an unknown outcome; a late request comes when its time has come."""

    async def run() -> tuple[bool, bool]:
        world = FlatWorld.new()
        faults = (
            Fault(CUT, op="create", times=1),
            Fault(LATE, op="create", times=1, delay=Latency("fixed", 5.0)),
        )
        weather = FaultInjector(random.Random(1), clock, Climate(faults=faults), ADLS)
        transport = InProcessAdls(world.emulator, weather, patience=1.0, agent=AGENT)
        options = {"connection_string": world.emulator.connection_string}
        host = replace(this_host(), now=clock)
        store = FlatBlobStore(parse_url(URL), options, environ={}, host=host, transport=transport)
        for name in ("/cut", "/late"):
            with pytest.raises(OutcomeUnknownError):
                await store.put(name, b"x")
        before = "late" in world.container.objects
        await store.aclose()
        return before, {"cut", "late"} <= world.container.objects.keys()

    assert run_virtual(run()) == (False, True)
